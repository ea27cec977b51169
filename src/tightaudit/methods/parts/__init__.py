"""What the rank-weighted method is made of: its strata, and the law of its count."""
