"""From p-values to a lower bound on ε: from one run, and the classic ones from many runs."""
