"""What claims are made of: pairs of laws, channels, the accountant, the typical claim."""
