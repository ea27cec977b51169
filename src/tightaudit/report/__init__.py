"""What a person sees: text, JSON and a web page, and the plots in it."""
