"""What every room uses and that knows nothing of privacy: checks, errors, extras, names, files."""
