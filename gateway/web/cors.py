"""Permissions of pages whose origin the operator has named (CORS of the Fetch standard).

Other origins receive no such header. The headers admit no request: a page needs a credential of its own like every
client, and the browser never adds one.
"""

import re
from collections.abc import Mapping
from typing import Final

from starlette.types import Scope

Headers = list[tuple[bytes, bytes]]

_METHODS: Final = b"GET, POST, PUT, PATCH, DELETE"
_SHOWN: Final = b"Mcp-Session-Id, WWW-Authenticate, Retry-After, X-Request-Id, ETag, Location, Idempotency-Replayed"
_KEPT_S: Final = b"600"
_NAMES: Final = re.compile(rb"[A-Za-z0-9!#$%&'*+.^_`|~, -]{1,2048}")


def is_preflight(scope: Scope) -> bool:
    """True if this is a preflight request, which a browser sends without a credential before a page's own request."""
    return scope["method"] == "OPTIONS" and any(
        name == b"access-control-request-method" for name, _ in scope["headers"]
    )


def permission(scope: Scope) -> Headers:
    """Headers of a preflight response: every method and all requested header names; only their values matter."""
    asked: Mapping[bytes, bytes] = dict(scope["headers"])
    wanted = asked.get(b"access-control-request-headers", b"")
    named = [(b"access-control-allow-headers", wanted)] if _NAMES.fullmatch(wanted) else []
    return [
        (b"access-control-allow-methods", _METHODS),
        *named,
        (b"access-control-max-age", _KEPT_S),
    ]


def shown_to(origin: bytes) -> Headers:
    """Headers of every response to a page of this origin; they permit it to read the response and some headers."""
    return [
        (b"access-control-allow-origin", origin),
        (b"access-control-expose-headers", _SHOWN),
        (b"vary", b"Origin"),
    ]
