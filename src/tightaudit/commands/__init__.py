"""What `tightaudit` can be told to do: one file per command."""
