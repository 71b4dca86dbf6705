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
