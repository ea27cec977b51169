"""From p-values to a lower bound on ε: from one run, and the classics from many runs of one guess each."""
