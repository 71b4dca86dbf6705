"""Limits of previews of requests: texts that people read before they decide."""

MAX_PREVIEW_LENGTH = 12_000
"""Limit on the characters of one preview."""
MAX_QUOTES = 100_000
"""Escaped quotes in a string that are passed in the search for its name; about 0.3 µs each."""
MAX_REQUESTS = 20
"""Limit on the requests and calls that are shown."""
