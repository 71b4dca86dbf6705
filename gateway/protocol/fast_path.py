"""The short way for the plainest requests, `tools/call` and the lists: answered here, or handed on untouched.

This is an accept-only edge in front of the SDK. It recognises two forms of request and refuses nothing: whatever it
does not recognise to the last member goes the long way, so that there is one judge of errors. By then the body has
passed the strict parser, and a call goes through the same stations as every other (`calls.pipeline`). A result stays
the bytes that the stations made of it, a list the bytes that were once made of its page.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

import msgspec
import structlog
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    LOG_LEVEL_META_KEY,
    PROTOCOL_VERSION_META_KEY,
)
from mcp_types import methods as surface
from pydantic import ValidationError
from starlette.types import Scope

from gateway.calls.pipeline import CallPipeline
from gateway.errors import GatewayError, InvalidCursor
from gateway.protocol.errors import internal_error, to_mcp
from gateway.protocol.http.results import STRUCTURED, JsonRpcReply, error_result, list_result, tool_result
from gateway.protocol.methods.lists import LISTS, is_declared, render_list
from gateway.protocol.request_context import RequestContext
from gateway.web.headers import headers_of

log = structlog.get_logger(__name__)

MODERN = "2026-07-28"
_MODERN = MODERN.encode()

_CALL = "tools/call"
_REQUEST = frozenset({"jsonrpc", "id", "method", "params"})
_MEMBERS: Mapping[str, frozenset[str]] = {
    _CALL: frozenset({"name", "arguments", "_meta"}),
    **{method: frozenset({"cursor", "_meta"}) for method in LISTS},
}
"""What the parameters of each method may hold."""

_ENVELOPE = (PROTOCOL_VERSION_META_KEY, CLIENT_CAPABILITIES_META_KEY, CLIENT_INFO_META_KEY, LOG_LEVEL_META_KEY)
_TOKEN = "progressToken"  # noqa: S105  # a member's name
_OURS: Final = ("mcp", "modelcontextprotocol", "progress")
"""What the names of the protocol's own members of `_meta` have in them; all others change no answer."""

_MAX_ENVELOPES = 1024
_LARGEST_REMEMBERED = 4096
"""Bytes; a client may send a megabyte of them, and another one with each request."""

_MAX_ID = 1024
_PARAMETER = b"mcp-param-"
_encode = msgspec.json.encode
_Params = Mapping[str, Any]


class FastPath:
    """Answers what it recognises; keeps nothing but which envelopes the SDK has found good."""

    def __init__(self, calls: CallPipeline) -> None:
        self._calls = calls
        self._good: set[bytes] = set()

    @property
    def remembered(self) -> int:
        """The envelopes that need not be judged again."""
        return len(self._good)

    async def modern(self, scope: Scope, message: Mapping[str, Any], context: RequestContext) -> JsonRpcReply | None:
        """The answer to a plain request of 2026-07-28; None for anything else, of which nothing was done."""
        params = _params_of(message)
        if params is None or not _mirrors(scope, message["method"], params.get("name")):
            return None
        if not self.is_good_envelope(params.get("_meta")):
            return None
        if message["method"] != _CALL:
            return _list(message, params, context, MODERN)
        return await self._call(message["id"], params, context, is_modern=True)

    async def handshake(self, message: Mapping[str, Any], context: RequestContext, version: str) -> JsonRpcReply | None:
        """The answer to a plain request in a session of this revision; None as above."""
        params = _params_of(message)
        if params is None or not _is_bare(params.get("_meta")):
            return None
        if message["method"] != _CALL:
            return _list(message, params, context, version)
        if version not in STRUCTURED:
            return None
        return await self._call(message["id"], params, context, is_modern=False)

    async def _call(
        self, request_id: int | str, params: _Params, context: RequestContext, *, is_modern: bool
    ) -> JsonRpcReply | None:
        registry, name, correlation_id = context.registry, params["name"], context.correlation_id
        try:
            bound = await registry.tool(name)
            if bound is None or bound.is_interactive or registry.mirrored_schema(name) is not None:
                return None
            arguments: dict[str, object] = params.get("arguments") or {}
            members = await self._calls.run(
                context.principal, bound, arguments, correlation_id=correlation_id, lookup=registry
            )
        except GatewayError as error:
            return error_result(request_id, to_mcp(error, correlation_id).error, is_modern=is_modern)
        except Exception:
            log.exception("method_failed", method=_CALL, correlation_id=correlation_id)
            return error_result(request_id, internal_error(correlation_id), is_modern=is_modern)
        return tool_result(request_id, members, is_modern=is_modern)

    def is_good_envelope(self, meta: object) -> bool:
        """Whether the SDK's own validation takes the envelope; asked once for each that clients repeat."""
        if not isinstance(meta, dict):
            return False
        members = cast(dict[str, Any], meta)
        envelope = {key: members[key] for key in _ENVELOPE if key in members}
        if envelope.get(PROTOCOL_VERSION_META_KEY) != MODERN or not _is_idle(members, members.keys() - envelope):
            return False
        seen = _encode(envelope)
        if seen in self._good:
            return True
        try:
            surface.validate_client_request("tools/list", MODERN, {"_meta": envelope})
        except ValidationError:
            return False
        if len(seen) <= _LARGEST_REMEMBERED:
            if len(self._good) >= _MAX_ENVELOPES:
                self._good.clear()
            self._good.add(seen)
        return True


def is_candidate(message: Mapping[str, Any]) -> bool:
    """Whether the message may be a plain request, so that it is worth asking."""
    return _params_of(message) is not None


def _list(message: Mapping[str, Any], params: _Params, context: RequestContext, version: str) -> JsonRpcReply | None:
    """The page as finished bytes; what is not declared, and what fails, is for the long way to say."""
    registry, method = context.registry, message["method"]
    if not is_declared(registry, method):
        return None
    try:
        members = render_list(registry, method, params.get("cursor"), version)
    except (InvalidCursor, ValueError):
        return None
    return list_result(message["id"], members, is_modern=version == MODERN)


def _params_of(message: Mapping[str, Any]) -> _Params | None:
    """The parameters of a request in its plainest form."""
    if not message.keys() <= _REQUEST or message.get("jsonrpc") != "2.0" or not _is_id(message.get("id")):
        return None
    method = message.get("method")
    allowed = _MEMBERS.get(method) if isinstance(method, str) else None
    params = message.get("params", {})
    if allowed is None or not isinstance(params, dict):
        return None
    members = cast(dict[str, Any], params)
    if not members.keys() <= allowed:
        return None
    return members if (_is_call(members) if method == _CALL else _is_list(members)) else None


def _is_call(params: _Params) -> bool:
    return isinstance(params.get("name"), str) and isinstance(params.get("arguments", {}), dict)


def _is_list(params: _Params) -> bool:
    return isinstance(params.get("cursor", ""), str)


def _is_id(value: object) -> bool:
    return len(value) <= _MAX_ID if isinstance(value, str) else type(value) is int


def _is_bare(meta: object) -> bool:
    """Whether there is no `_meta`, or none that a JSON answer has a use for."""
    if not isinstance(meta, dict):
        return meta is None
    members = cast(dict[str, Any], meta)
    return _is_idle(members, members)


def _is_idle(meta: Mapping[str, Any], names: Iterable[str]) -> bool:
    """Whether these members of `_meta` change nothing of a JSON answer: a progress token, or what is not MCP's own."""
    return all(_is_id(meta[name]) if name == _TOKEN else not any(ours in name for ours in _OURS) for name in names)


def _mirrors(scope: Scope, method: str, name: str | None) -> bool:
    """Whether the headers say, once and literally, what the body says, and mirror no parameter."""
    fields = headers_of(scope)
    if fields.repeated:
        return False
    if _PARAMETER in fields.text and any(key.startswith(_PARAMETER) for key, _ in scope["headers"]):
        return False
    if fields.get(b"mcp-protocol-version") != _MODERN or fields.get(b"mcp-method") != method.encode():
        return False
    said = fields.get(b"mcp-name")
    if name is None:
        return said is None
    return name.isascii() and said == name.encode() and not name.startswith("=?")
