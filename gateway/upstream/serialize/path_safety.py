"""Validation of path values: refuses values that could change the path of the request.

A value is checked unchanged, and after one and two percent-decodings, because proxies and frameworks may decode more
than once.
"""

import re
from urllib.parse import unquote

from gateway.upstream.serialize.percent_encoding import Unwritable

_HARMLESS = re.compile(r"[A-Za-z0-9_~-][A-Za-z0-9._~-]*")
_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f\\]")
_DOT_SEGMENT = re.compile(r"(?:^|/)\s*\.{1,2}\s*(?:$|[/;?#])")
_DECODED_SEGMENT = re.compile(r"(?:^|/)(?:\.|%2[eE]){1,2}(?:/|;|$)")


def check_path_value(text: str) -> None:
    """Refuse an empty value, a leading or encoded `/`, a dot segment, a backslash and a control character.

    Raises:
        Unwritable: the value may not be part of a path.
    """
    if _HARMLESS.fullmatch(text):
        return
    if not text:
        raise Unwritable("it is empty, which would change the path")
    once = unquote(text)
    twice = unquote(once)
    for form in (text, once, twice):  # guard: path-decoded-twice
        if _FORBIDDEN.search(form):
            raise Unwritable("it has a backslash or a control character, which a path must not have")
        if _DOT_SEGMENT.search(form):  # guard: path-dot-segments
            raise Unwritable("it has a '.' or '..' segment, which would change the path")
    if text.startswith("/"):
        raise Unwritable("it starts with '/', which would change the path")
    if text.count("/") != once.count("/") or text.count("/") != twice.count("/"):
        raise Unwritable("it has an encoded '/'; send the plain character, which the gateway encodes")


def has_dot_segment(path: str) -> bool:
    """True if an encoded path has a `.` or `..` segment, even with percent-encoded dots."""
    return ("/." in path or "/%" in path) and _DECODED_SEGMENT.search(path) is not None
