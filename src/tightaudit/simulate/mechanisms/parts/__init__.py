"""What mechanisms are made of."""
