"""What is decided before a run is looked at: how many guesses to release, and how many canaries to plant."""
