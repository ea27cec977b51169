"""What a person or a script sees: words, tables, JSON, the page and plots. Nothing here computes a bound."""
