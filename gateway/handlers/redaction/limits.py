"""Limits of the search for credentials in responses."""

WINDOW_BYTES = 64 * 1024
"""Bytes that are compared at once; longer responses are compared window by window."""
MAX_OVERLAP_BYTES = WINDOW_BYTES // 2
"""Bytes that two windows have in common at most, so that each window advances by half."""
MAX_CACHED = 8
"""Redactors that one replica keeps for each handler; callers' own credentials need one each."""
MAX_PLACES = 1_000
"""Limit on the matches redacted one by one (about 50 µs each). With more, text or JSON is replaced completely."""

MIN_SECRET_LENGTH = 6
"""Secrets with fewer characters are ignored, because they would match much unrelated text. In the base64 of Basic
authentication, user name and password count together.
"""
