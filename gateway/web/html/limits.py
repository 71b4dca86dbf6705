"""Limits of HTML pages, forms and cookies."""

MAX_COOKIE_BYTES = 4000
"""Limit on name and value together; browsers drop cookies of more than 4,096 bytes."""

MAX_TEXT_LENGTH = 500
"""Characters of an untrusted text on one line of a page; longer ones would push other facts out of sight."""

MAX_FORM_BYTES = 16 * 1024
"""Bytes of a form; the longest field is a comment of 1,000 characters, which percent-encoding makes 12 times longer."""
FORM_TIMEOUT_S = 10.0
"""Seconds for a form to arrive, so that a slow client does not hold its connection."""
MAX_FIELDS = 10
"""Fields of a form or query; the largest form of the pages has fewer, and other callers state their own limit."""

IDLE_S = 3600
"""Seconds without a request after which a browser session ends, so that a forgotten window cannot approve calls."""
