"""The figures of the paper, one file each, drawn from data computed here."""
