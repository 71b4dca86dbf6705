"""The short way for the plainest `tools/call`: answered here, or handed on untouched.

This is an accept-only edge in front of the SDK. It recognises one form of request and refuses nothing: whatever it
does not recognise to the last member goes the long way, so that there is one judge of errors. By then the body has
passed the strict parser, and the call itself goes through the same stations as every other (`calls.run`). A result
stays the bytes that the stations made of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import msgspec
import structlog
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import ERROR_CODE_HTTP_STATUS
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    INTERNAL_ERROR,
    PROTOCOL_VERSION_META_KEY,
    SERVER_INFO_META_KEY,
)
from mcp_types import methods as surface
from pydantic import ValidationError
from starlette.types import Scope

from gateway.calls.run import Calls
from gateway.errors import GatewayError
from gateway.protocol.current import Exchange
from gateway.protocol.errors import details_of, to_mcp
from gateway.protocol.identity import NAME, VERSION

log = structlog.get_logger(__name__)

MODERN = "2026-07-28"
STRUCTURED = frozenset({"2025-06-18", "2025-11-25"})
"""The handshake revisions whose results look like ours; older ones go the long way."""

_REQUEST = frozenset({"jsonrpc", "id", "method", "params"})
_PARAMS = frozenset({"name", "arguments", "_meta"})
_ENVELOPE = frozenset({PROTOCOL_VERSION_META_KEY, CLIENT_CAPABILITIES_META_KEY, CLIENT_INFO_META_KEY})
_TOKEN = "progressToken"  # noqa: S105  # a member's name
_MAX_ENVELOPES = 1024
_encode = msgspec.json.encode
_SERVER = b'"' + SERVER_INFO_META_KEY.encode() + b'":' + _encode({"name": NAME, "version": VERSION})
_COMPLETE = b',"resultType":"complete"'
_STRUCTURED = b',"structuredContent":'
_IS_ERROR = b',"isError":'


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole answer: HTTP status and JSON-RPC body."""

    status: int
    body: bytes


class Plain:
    """Answers what it recognises; keeps nothing but which envelopes the SDK has found good."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._good: set[bytes] = set()

    async def modern(self, scope: Scope, message: Mapping[str, Any], exchange: Exchange) -> Reply | None:
        """The answer to a plain call of 2026-07-28; None for anything else, of which nothing was done."""
        params = _params_of(message)
        if params is None or not _mirrors(scope, params["name"]) or not self._is_good_envelope(params.get("_meta")):
            return None
        return await self._call(message["id"], params, exchange, is_modern=True)

    async def session(self, message: Mapping[str, Any], exchange: Exchange, version: str) -> Reply | None:
        """The answer to a plain call in a session of this revision; None as above."""
        params = _params_of(message)
        if params is None or version not in STRUCTURED or not _is_bare(params.get("_meta")):
            return None
        return await self._call(message["id"], params, exchange, is_modern=False)

    async def _call(
        self, request_id: int | str, params: Mapping[str, Any], exchange: Exchange, *, is_modern: bool
    ) -> Reply | None:
        registry, name = exchange.registry, params["name"]
        bound = await registry.tool(name)
        if bound is None or registry.mirrored_schema(name) is not None:
            return None
        correlation_id = exchange.correlation_id
        head = b'{"jsonrpc":"2.0","id":' + _encode(request_id)
        try:
            arguments: dict[str, object] = params.get("arguments") or {}
            members = await self._calls.run(exchange.principal, bound, arguments, correlation_id=correlation_id)
        except GatewayError as error:
            return _failed(head, to_mcp(error, correlation_id), is_modern=is_modern)
        except Exception:
            log.exception("method_failed", method="tools/call", correlation_id=correlation_id)
            details = details_of(GatewayError(""), correlation_id)
            return _failed(head, MCPError(INTERNAL_ERROR, "Internal server error", details), is_modern=is_modern)
        return Reply(200, b"".join((head, b',"result":{', _finish(members, is_modern=is_modern), b"}}")))

    def _is_good_envelope(self, meta: object) -> bool:
        """Whether the SDK's own validation takes the envelope; asked once for each that clients repeat."""
        if not isinstance(meta, dict):
            return False
        members = cast(dict[str, Any], meta)
        envelope = {key: value for key, value in members.items() if key != _TOKEN}
        if not envelope.keys() <= _ENVELOPE or envelope.get(PROTOCOL_VERSION_META_KEY) != MODERN:
            return False
        if _TOKEN in members and not _is_id(members[_TOKEN]):
            return False
        seen = _encode(envelope)
        if seen in self._good:
            return True
        try:
            surface.validate_client_request("tools/list", MODERN, {"_meta": envelope})
        except ValidationError:
            return False
        if len(self._good) >= _MAX_ENVELOPES:
            self._good.clear()
        self._good.add(seen)
        return True


def recognises(message: Mapping[str, Any]) -> bool:
    """Whether the message may be a plain call, so that it is worth asking."""
    return _params_of(message) is not None


def _params_of(message: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The parameters of a tools/call in its plainest form."""
    if len(message) != len(_REQUEST) or not message.keys() <= _REQUEST:
        return None
    if message["jsonrpc"] != "2.0" or message["method"] != "tools/call":
        return None
    params = message["params"]
    if not _is_id(message["id"]) or not isinstance(params, dict):
        return None
    members = cast(dict[str, Any], params)
    if not members.keys() <= _PARAMS or not isinstance(members.get("name"), str):
        return None
    return members if isinstance(members.get("arguments", {}), dict) else None


def _is_id(value: object) -> bool:
    return isinstance(value, str) or type(value) is int


def _is_bare(meta: object) -> bool:
    """Whether there is no `_meta`, or only a progress token, which a JSON answer has no use for."""
    if not isinstance(meta, dict):
        return meta is None
    members = cast(dict[str, Any], meta)
    return members.keys() == {_TOKEN} and _is_id(members[_TOKEN])


def _mirrors(scope: Scope, name: str) -> bool:
    """Whether the headers say, once and literally, what the body says, and mirror no parameter."""
    seen: dict[bytes, bytes] = {}
    for key, value in scope["headers"]:
        if key in seen or key.startswith(b"mcp-param-"):
            return False
        seen[key] = value
    return (
        seen.get(b"mcp-protocol-version") == MODERN.encode()
        and seen.get(b"mcp-method") == b"tools/call"
        and name.isascii()
        and seen.get(b"mcp-name") == name.encode()
        and not name.startswith("=?")
    )


def _finish(members: bytes, *, is_modern: bool) -> bytes:
    """The members of a result as the era has them.

    The stations put `_meta` last where there is one (errors only), and `isError` last otherwise.
    """
    if not is_modern:
        return _without_bare_structure(members)
    if members.endswith(b"}"):
        return b"".join((members[:-1], b",", _SERVER, b"}", _COMPLETE))
    return b"".join((members, _COMPLETE, b',"_meta":{', _SERVER, b"}"))


def _without_bare_structure(members: bytes) -> bytes:
    """Before 2026-07-28 structured content had to be an object: anything else stays in the text alone.

    Quotes inside the text block are escaped, so the first unescaped member of that name is the one.
    """
    start = members.find(_STRUCTURED)
    if start < 0 or members[start + len(_STRUCTURED) : start + len(_STRUCTURED) + 1] == b"{":
        return members
    return members[:start] + members[members.rfind(_IS_ERROR) :]


def _failed(head: bytes, error: MCPError, *, is_modern: bool) -> Reply:
    said = error.error.model_dump(exclude_none=True)
    status = ERROR_CODE_HTTP_STATUS.get(error.error.code, 200) if is_modern else 200
    return Reply(status, b"".join((head, b',"error":', _encode(said), b"}")))
