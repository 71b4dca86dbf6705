"""Check for absolute URIs (RFC 3986) that a resource may have."""

import re

LONGEST = 2048
FORM = r"^[A-Za-z][A-Za-z0-9+.-]*:(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+$"
"""Pattern for JSON Schemas; `is_uri` also allows at most one fragment."""

_URI = re.compile(FORM)


def is_uri(text: str) -> bool:
    """True if the text is an absolute URI: ASCII, a scheme and more text, at most one fragment."""
    return len(text) <= LONGEST and _URI.fullmatch(text) is not None and text.count("#") <= 1
