"""Whether a text is an absolute URI (RFC 3986) that a resource may have."""

import re

LONGEST = 2048
FORM = r"^[A-Za-z][A-Za-z0-9+.-]*:(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+$"
"""For JSON Schema; `is_uri` is stricter: it takes one fragment at most."""

_URI = re.compile(FORM)


def is_uri(text: str) -> bool:
    """Whether it is one: ASCII, a scheme, something behind it, at most one fragment."""
    return len(text) <= LONGEST and _URI.fullmatch(text) is not None and text.count("#") <= 1
