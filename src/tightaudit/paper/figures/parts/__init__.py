"""What figures are made of: cells to compute, where they run and are kept, and how lines look."""
