"""What pages of other sites may do and see where an operator has named their origin (CORS of the Fetch standard).

Nothing is said to anybody else, and nobody is let in by it: a page needs a credential of its own like every client,
and none is ever sent along by the browser.
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
    """Whether a browser asks what a page may do, before it lets the page do it; it sends no credential with that."""
    return scope["method"] == "OPTIONS" and any(
        name == b"access-control-request-method" for name, _ in scope["headers"]
    )


def permission(scope: Scope) -> Headers:
    """The answer to that: every method, and whatever headers it wants to send; only what it says in them counts."""
    asked: Mapping[bytes, bytes] = dict(scope["headers"])
    wanted = asked.get(b"access-control-request-headers", b"")
    named = [(b"access-control-allow-headers", wanted)] if _NAMES.fullmatch(wanted) else []
    return [
        (b"access-control-allow-methods", _METHODS),
        *named,
        (b"access-control-max-age", _KEPT_S),
    ]


def shown_to(origin: bytes) -> Headers:
    """What every answer to a page of this origin says: that the page may read it, and which of its headers."""
    return [
        (b"access-control-allow-origin", origin),
        (b"access-control-expose-headers", _SHOWN),
        (b"vary", b"Origin"),
    ]
