"""Syntax check of the absolute URIs (RFC 3986) of resources."""

import re

LONGEST = 2048
FORM = r"^[A-Za-z][A-Za-z0-9+.-]*:(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+$"
"""Pattern for JSON Schemas. `is_uri` also limits the length, and refuses a second `#`."""

_URI = re.compile(FORM)


def is_uri(text: str) -> bool:
    """True if the text is an absolute URI of at most 2048 ASCII characters with at most one `#`."""
    return len(text) <= LONGEST and _URI.fullmatch(text) is not None and text.count("#") <= 1
