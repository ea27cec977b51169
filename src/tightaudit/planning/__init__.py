"""What is decided before anyone looks at a run: how many guesses to release and canaries to plant."""
