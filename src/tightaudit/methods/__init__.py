"""P-values: one file per method, each with the beliefs it rests on."""
