"""Rows of the declared kinds: one engine for statements, and the mapping of each kind to its table."""
