"""Limits of the responses of single endpoints."""

MAX_EXPLAINED = 50
"""Entries of one request that its explanation reads; a request writes a few."""

MAX_KEYS = 20
"""Keys that can approve, in one explanation."""

MAX_NUMBER_LENGTH = 9
"""Digits of a version's number in a path, so that it fits into the integers of PostgreSQL."""

MAX_SHOWN_BODY_BYTES = 64 * 1024
"""Bytes of a body in the response about a test call; the number of all bytes follows."""
