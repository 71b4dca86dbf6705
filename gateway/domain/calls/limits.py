"""Limits of what a call leaves: its stored result and its audit entry."""

MAX_REASON_LENGTH = 500
"""Characters of a rule's member or a reason in an entry. A reason may quote what a client sent."""
MAX_TARGET_LENGTH = 256
"""Characters of the name of the target in an entry; the name of an unknown tool comes from the client."""

MAX_STORED_BYTES = 10 * 1024 * 1024
"""The size limit of one stored result, in bytes."""
