"""Limits of refusals about configurable objects."""

MAX_SHOWN_LENGTH = 200
"""Characters of a member's value in a refusal that names the members that a PUT would remove."""
