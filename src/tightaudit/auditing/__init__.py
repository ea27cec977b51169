"""From scores to a report: the question, the rows of the table of beliefs, and what decides."""
