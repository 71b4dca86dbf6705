"""Checks of URLs, header names and header values before they are sent.

Every request URL and every header of a request head passes these checks.
"""

import re
from functools import lru_cache

from gateway.domain.http.headers import DESCRIBED, FRAMING, is_private, is_token

_NAMES = 1024
_VALUE = re.compile(r"(?:[!-~](?:[ \t!-~]*[!-~])?)?")
"""Visible ASCII with inner blanks: a field value without surrounding whitespace (RFC 9110 section 5.5).

Without obs-text (bytes from 0x80), because its encoding is undefined.
"""
_URL = re.compile(
    r"(https?://(?:[A-Za-z0-9._~-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?)((?:[/?][A-Za-z0-9._~!$&'()*+,;=:@%/?\[\]-]*)?)"
)


def is_header_value(value: str) -> bool:
    """True if this value is transmitted unchanged and cannot inject another header."""
    return _VALUE.fullmatch(value) is not None


def is_sendable_url(url: str) -> bool:
    """True if this is an absolute, fully encoded http(s) URL without credentials or fragment."""
    return _URL.fullmatch(url) is not None


def split_url(url: str) -> tuple[str, str] | None:
    """Split a URL into its origin and the rest; None if the URL cannot be sent."""
    found = _URL.fullmatch(url)
    return None if found is None else (found[1], found[2])


@lru_cache(_NAMES)
def is_sendable_header(name: str) -> bool:
    """True if a request may contain a header of this name; framing headers are written by the gateway only."""
    lower = name.lower()
    return is_token(name) and lower not in FRAMING and not lower.startswith("proxy-")


def is_argument_header(name: str) -> bool:
    """True if a tool argument may fill this header: not framing, identity, forwarding, override or body headers."""
    return is_sendable_header(name) and name.lower() not in DESCRIBED and not is_private(name)
