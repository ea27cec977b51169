"""From files and data frames to a Run: one module per format."""
