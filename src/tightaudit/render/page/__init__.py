"""An audit as one self-contained web page."""
