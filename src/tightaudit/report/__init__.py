"""What a person sees: tables on the terminal."""
