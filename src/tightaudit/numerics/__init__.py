"""Numerical tools that know nothing of privacy: Beta quadrature and vectorised inversion."""
