"""Mechanisms whose privacy is known, and how often methods are wrong about them."""
