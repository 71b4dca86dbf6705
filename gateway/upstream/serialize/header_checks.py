"""Checks of URLs, header names and header values before they are sent.

Everything that is written to an upstream passes these checks, and no error repeats the refused text.
"""

import re
from functools import lru_cache

from gateway.domain.http.headers import DESCRIBED, FRAMING, is_private

_NAMES = 1024
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"(?:[!-~](?:[ \t!-~]*[!-~])?)?")
"""Visible ASCII with inner blanks: a field value without surrounding whitespace (RFC 9110 section 5.5).

No obs-text: the encoding in which it would be read is unknown.
"""
_URL = re.compile(
    r"(https?://(?:[A-Za-z0-9._~-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?)((?:[/?][A-Za-z0-9._~!$&'()*+,;=:@%/?\[\]-]*)?)"
)


def is_token(name: str) -> bool:
    """True if this can be a header or cookie name."""
    return _TOKEN.fullmatch(name) is not None


def is_header_value(value: str) -> bool:
    """True if this is sent unchanged, and can neither end the header nor start another."""
    return _VALUE.fullmatch(value) is not None


def is_sendable_url(url: str) -> bool:
    """True if this is an absolute, fully encoded http(s) URL without credentials or fragment."""
    return _URL.fullmatch(url) is not None


def split_url(url: str) -> tuple[str, str] | None:
    """The origin and the rest of a URL; None if it cannot be sent."""
    found = _URL.fullmatch(url)
    return None if found is None else (found[1], found[2])


@lru_cache(_NAMES)
def is_sendable_header(name: str) -> bool:
    """True if the pool sends a header of this name for its callers."""
    lower = name.lower()
    return is_token(name) and lower not in FRAMING and not lower.startswith("proxy-")


def is_argument_header(name: str) -> bool:
    """True if a tool argument may fill this header: not framing, identity, forwarding, override or body headers."""
    return is_sendable_header(name) and name.lower() not in DESCRIBED and not is_private(name)
