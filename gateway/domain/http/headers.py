"""Which request headers belong to the connection or to the gateway, so that no caller's argument may fill them.

The import asks, so that they are not offered; the door asks again, so that they are not sent.
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
"""They describe the message or the connection: only the pool itself writes them."""

DESCRIBED = frozenset({"accept", "authorization", "content-type"})
"""OpenAPI describes them elsewhere than among parameters (OpenAPI 3.x, Parameter Object, `in: header`)."""

PRIVATE = frozenset({"cookie", "forwarded", "set-cookie", "via", "x-real-ip"})
"""They say who asks and which way a request came."""

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
"""Servers and frameworks take the method or the target from them, which would not be the ones that were judged."""

METHOD_FIELD = "_method"
"""The field of a query or form from which frameworks take the method."""


def is_private(name: str) -> bool:
    """True for a header that only the gateway may fill; `_` counts as `-`, as in CGI and WSGI."""
    lower = name.lower().replace("_", "-")
    return lower in PRIVATE or lower in OVERRIDES or lower.startswith(PRIVATE_PREFIXES)
