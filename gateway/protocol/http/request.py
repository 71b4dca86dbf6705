"""One HTTP request to an MCP URL, read once at the endpoint; nothing below the endpoint reads the ASGI scope.

The SDK's own transports are the exception: they receive the scope of the request.
"""

import re
from collections.abc import Awaitable, Mapping
from functools import lru_cache
from typing import Final, Self

import msgspec
from starlette.types import Receive, Scope, Send

from gateway.protocol.http.responses import JSON, Body, Headers, send_response
from gateway.web.headers import HeaderIndex, headers_of

_CACHE_SIZE: Final = 64
"""Number of header values whose evaluation is cached; small, because the values may be long."""

_WEIGHT = re.compile(r"0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?")


class McpRequest(msgspec.Struct, frozen=True):
    """Method, URL and headers of a request, and the channels to its client."""

    method: str
    path: str
    query: bytes
    headers: HeaderIndex
    version: str | None
    """The first `MCP-Protocol-Version` header."""
    receive: Receive
    send: Send
    scope: Scope
    """For the SDK's transports only."""

    @classmethod
    def read(cls, scope: Scope, receive: Receive, send: Send) -> Self:
        """Read the request from its ASGI scope."""
        headers = headers_of(scope)
        version = headers.get(b"mcp-protocol-version")
        named = None if version is None else version.decode("latin-1")
        return cls(scope["method"], scope["path"], scope["query_string"], headers, named, receive, send, scope)

    def respond(self, status: int, body: Body = b"", *, headers: Headers = ()) -> Awaitable[None]:
        """Send one complete response."""
        return send_response(self.send, status, body, headers=headers)

    def accepts(self, kind: str) -> bool:
        """True if the client accepts this media type; without an Accept header it accepts any (RFC 9110 §12.5.1)."""
        accept = self.headers.get(b"accept")
        return accept is None or _includes(accept, kind)

    def prefers(self, kind: str, *, to: str) -> bool:
        """True if the header prefers one media type to another: by weight, then by order. Wildcards do not count."""
        accept = self.headers.get(b"accept")
        return accept is not None and _prefers(accept, kind, to)

    @property
    def is_json(self) -> bool:
        """True if Content-Type declares the body as JSON."""
        declared = self.headers.get(b"content-type")
        return declared == JSON or (declared is not None and declared.partition(b";")[0].strip().lower() == JSON)

    @property
    def is_encoded(self) -> bool:
        """True if Content-Encoding declares the body compressed or otherwise encoded, or is repeated."""
        coding = self.headers.get(b"content-encoding", b"")
        return b"content-encoding" in self.headers.repeated or coding.strip().lower() not in {b"", b"identity"}


@lru_cache(_CACHE_SIZE)
def _includes(detail: bytes, kind: str) -> bool:
    accept = detail.decode("latin-1")
    names = (kind, f"{kind.partition('/')[0]}/*", "*/*")
    if ";" not in accept:
        return any(part.strip().lower() in names for part in accept.split(","))
    ranked = _ranked(accept)
    return next((ranked[name][0] < 0 for name in names if name in ranked), False)  # the most specific name decides


@lru_cache(_CACHE_SIZE)
def _prefers(detail: bytes, kind: str, to: str) -> bool:
    ranked = _ranked(detail.decode("latin-1"))
    return kind in ranked and (to not in ranked or ranked[kind] < ranked[to])


def _ranked(accept: str) -> Mapping[str, tuple[float, int]]:
    """The media types of an Accept header, with negated weight and position; a weight of 0 is a refusal."""
    ranked: dict[str, tuple[float, int]] = {}
    for index, part in enumerate(accept.split(",")):
        named, *parameters = (piece.strip().lower() for piece in part.split(";"))
        weights = [parameter[2:] for parameter in parameters if parameter.startswith("q=")]
        ranked.setdefault(named, (-_weight(weights[0] if weights else "1"), index))
    return ranked


def _weight(text: str) -> float:
    """Parse a qvalue (RFC 9110 §12.4.2); an invalid one is treated as absent."""
    return float(text) if _WEIGHT.fullmatch(text) else 1.0
