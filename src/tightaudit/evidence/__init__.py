"""What a run leaves behind: coins, guesses, counts, and the files they are read from."""
