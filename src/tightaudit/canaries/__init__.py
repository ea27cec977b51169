"""Planting canaries in a training: a core without a framework, and a thin adapter per framework."""
