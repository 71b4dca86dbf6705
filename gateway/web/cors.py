"""CORS headers (Fetch standard) for pages whose origin the operator has configured.

Other origins receive no CORS headers. The headers do not authenticate: a page must send a credential like every client,
and the browser does not add one.
"""

import re
from collections.abc import Mapping
from typing import Final

from starlette.types import Scope

Headers = list[tuple[bytes, bytes]]

_METHODS: Final = b"GET, POST, PUT, PATCH, DELETE"
_EXPOSED_HEADERS: Final = (
    b"Mcp-Session-Id, WWW-Authenticate, Retry-After, X-Request-Id, ETag, Location, Idempotency-Replayed"
)
_PREFLIGHT_MAX_AGE_S: Final = b"600"
_NAMES: Final = re.compile(rb"[A-Za-z0-9!#$%&'*+.^_`|~, -]{1,2048}")


def is_preflight(scope: Scope) -> bool:
    """True if this is a preflight request, which a browser sends without a credential before the page's request."""
    return scope["method"] == "OPTIONS" and any(
        name == b"access-control-request-method" for name, _ in scope["headers"]
    )


def preflight_headers(scope: Scope) -> Headers:
    """Return the headers of a preflight response: they permit five methods and all requested header names.

    Names in an invalid or overlong `Access-Control-Request-Headers` are not permitted.
    """
    headers: Mapping[bytes, bytes] = dict(scope["headers"])
    wanted = headers.get(b"access-control-request-headers", b"")
    named = [(b"access-control-allow-headers", wanted)] if _NAMES.fullmatch(wanted) else []
    return [
        (b"access-control-allow-methods", _METHODS),
        *named,
        (b"access-control-max-age", _PREFLIGHT_MAX_AGE_S),
    ]


def response_headers(origin: bytes) -> Headers:
    """Return the CORS headers of responses to this origin; they permit the page to read the body and some headers."""
    return [
        (b"access-control-allow-origin", origin),
        (b"access-control-expose-headers", _EXPOSED_HEADERS),
        (b"vary", b"Origin"),
    ]
