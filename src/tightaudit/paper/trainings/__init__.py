"""The trainings of the paper and of the demo (extra `torch`)."""
