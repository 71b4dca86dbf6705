"""Request headers that belong to the connection or to the gateway, so no caller's argument may fill them.

Checked twice: at import, so that they are not offered as arguments, and before a request is sent.
"""

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
"""Headers that describe the message or the connection; only the connection pool writes them."""

DESCRIBED = frozenset({"accept", "authorization", "content-type"})
"""Headers that OpenAPI describes elsewhere than among parameters (OpenAPI 3.x, Parameter Object, `in: header`)."""

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
"""Headers from which servers and frameworks take the method or target. Those would differ from the checked ones."""

METHOD_FIELD = "_method"
"""The query or form field from which frameworks take the method."""


def is_private(name: str) -> bool:
    """True for a header that only the gateway may fill; `_` counts as `-`, as in CGI and WSGI."""
    lower = name.lower().replace("_", "-")
    return lower in PRIVATE or lower in OVERRIDES or lower.startswith(PRIVATE_PREFIXES)
