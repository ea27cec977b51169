"""The paper, reproduced: its figures and its trainings. Only the command line imports from here."""
