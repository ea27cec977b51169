"""Mechanisms to audit, one file each, with the claim it truly satisfies."""
