"""Limits of previews of requests: texts that people read before they decide."""

MAX_PREVIEW_LENGTH = 12_000
"""Limit on the characters of one preview."""
MAX_QUOTES = 100_000
"""Escaped quotes in a string that are passed in the search for its name; about 0.3 µs each."""
MAX_REQUESTS = 20
"""Limit on the requests and calls that are shown."""
MAX_SHOWN_URL_LENGTH = 2_000
"""Characters of a shown URL, about those that servers accept."""
MAX_SHOWN_BODY_LENGTH = 4_000
"""Characters of a shown body, a third of a preview."""
MAX_SHOWN_VALUE_LENGTH = 500
"""Characters of a shown header or of the head of a part; also those that are searched for the name of a string."""
MAX_SHOWN_HEADERS = 20
"""Headers that are shown; the number of the others follows."""
MAX_SHOWN_PARTS = 20
"""Parts of a multipart body that are shown, half of them from its end; the number of the others follows."""

STEPS_PREVIEW_LENGTH = 6_000
"""Characters of the preview of a list of steps, divided equally among the requests."""
MIN_REQUEST_LENGTH = 300
"""Characters that each request of a list of steps has at least: its method, its URL and the start of its body."""
