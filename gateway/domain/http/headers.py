"""Request headers that a caller's arguments may not fill, because the connection or the gateway sets them.

An import does not offer them as arguments. They are checked again when a request is built.
"""

import re

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")

FRAMING = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-encoding",
        "content-length",
        "expect",
        "host",
        "http2-settings",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers that describe the message or the connection; the connection pool sets those that are needed."""

DESCRIBED = frozenset({"accept", "authorization", "content-type"})
"""Headers that OpenAPI does not describe as parameters (OpenAPI 3.x, Parameter Object, `in: header`)."""

PRIVATE = frozenset({"cookie", "forwarded", "set-cookie", "via", "x-real-ip"})
"""Headers that identify the sender or the route of a request."""

PRIVATE_PREFIXES = ("proxy-", "x-forwarded-")

OVERRIDES = frozenset(
    {
        "x-http-method",
        "x-http-method-override",
        "x-method-override",
        "x-original-method",
        "x-original-uri",
        "x-original-url",
        "x-override-url",
        "x-rewrite-url",
    }
)
"""Headers that replace the method or the target in some servers and frameworks, after the gateway has checked them."""

METHOD_FIELD = "_method"
"""The query or form field that frameworks read as the method."""


def is_token(name: str) -> bool:
    """True if this can be a header or cookie name (RFC 9110 section 5.6.2)."""
    return _TOKEN.fullmatch(name) is not None


def is_fillable(name: str) -> bool:
    """True if a stored credential may fill this header: not framing, forwarding, overriding or describing the body."""
    lower = name.lower()
    return lower not in FRAMING and lower != "content-type" and (lower == "cookie" or not is_private(name))


def is_private(name: str) -> bool:
    """True for identity, forwarding and override headers; `_` is treated as `-`, as in CGI and WSGI."""
    lower = name.lower().replace("_", "-")
    # guard: method-override-headers
    return lower in PRIVATE or lower in OVERRIDES or lower.startswith(PRIVATE_PREFIXES)
