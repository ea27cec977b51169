"""Audits of any mechanism: two inputs, many calls, a score that is learned."""
