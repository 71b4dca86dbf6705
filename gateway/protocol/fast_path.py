"""The fast path in front of the SDK, for plain `tools/call` and list requests.

It serves a request only if it recognises every member. Any other request goes to the SDK unchanged, and the SDK reports
all violations of the protocol. The body has already passed the strict parser. A call goes through the same pipeline as
in the SDK's handlers (`gateway.calls.pipeline`), and an error of the pipeline becomes the response. The rendered bytes
of a result, or of a list page, are copied into the response and never decoded.
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

from gateway.calls.pipeline import CallPipeline
from gateway.domain.fairness.bounded_cache import BoundedCache
from gateway.errors import GatewayError, InvalidCursor
from gateway.protocol.errors import internal_error, to_mcp
from gateway.protocol.http.request import McpRequest
from gateway.protocol.http.results import STRUCTURED, JsonRpcReply, error_result, list_result, tool_result
from gateway.protocol.methods.lists import LISTS, is_declared, render_list
from gateway.protocol.request_context import RequestContext

log = structlog.get_logger(__name__)

MODERN = "2026-07-28"

_CALL = "tools/call"
_REQUEST = frozenset({"jsonrpc", "id", "method", "params"})
_MEMBERS: Mapping[str, frozenset[str]] = {
    _CALL: frozenset({"name", "arguments", "_meta"}),
    **{method: frozenset({"cursor", "_meta"}) for method in LISTS},
}
"""The members that the parameters of each method may contain."""

_ENVELOPE = (PROTOCOL_VERSION_META_KEY, CLIENT_CAPABILITIES_META_KEY, CLIENT_INFO_META_KEY, LOG_LEVEL_META_KEY)
_TOKEN = "progressToken"  # noqa: S105  # a member's name
_OURS: Final = ("mcp", "modelcontextprotocol", "progress")
"""Substrings that mark a `_meta` member as MCP's own; no other member of `_meta` changes a response."""

_MAX_ENVELOPES = 1024
_LARGEST_REMEMBERED = 4096
"""The largest envelope that is cached, in bytes. A client may send a different envelope of 1 MB with each request."""

_MAX_ID = 1024
_PARAMETER = b"mcp-param-"
_encode = msgspec.json.encode
_Params = Mapping[str, Any]


class FastPath:
    """Serves the requests that it recognises; its only state is a cache of envelopes that the SDK found valid."""

    def __init__(self, calls: CallPipeline) -> None:
        self._calls = calls
        self._good = BoundedCache[bytes, None](_MAX_ENVELOPES)

    @property
    def remembered(self) -> int:
        """Number of envelopes that are cached as valid."""
        return len(self._good)

    async def modern(
        self, request: McpRequest, message: Mapping[str, Any], context: RequestContext
    ) -> JsonRpcReply | None:
        """The response to a plain request of 2026-07-28; None, without any effect, for all other requests."""
        params = _params_of(message)
        if params is None or not _mirrors(request, message["method"], params.get("name")):  # guard: plain-mirrored
            return None
        if not self.is_good_envelope(params.get("_meta")):
            return None
        if message["method"] != _CALL:
            return _list(message, params, context, MODERN)
        return await self._call(message["id"], params, context, is_modern=True)

    async def handshake(self, message: Mapping[str, Any], context: RequestContext, version: str) -> JsonRpcReply | None:
        """The response to a plain request in a session; None, without any effect, for all other requests."""
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
        """True if the SDK accepts the envelope and the rest of `_meta` has no effect; small envelopes are cached."""
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
        if len(seen) <= _LARGEST_REMEMBERED:  # guard: small-envelopes-remembered
            self._good[seen] = None
        return True


def is_candidate(message: Mapping[str, Any]) -> bool:
    """True if the message has the members of a plain request; its headers and `_meta` are not checked here."""
    return _params_of(message) is not None


def _list(message: Mapping[str, Any], params: _Params, context: RequestContext, version: str) -> JsonRpcReply | None:
    """The response with a rendered page; None if the list is undeclared or fails, which the SDK reports."""
    registry, method = context.registry, message["method"]
    if not is_declared(registry, method):
        return None
    try:
        members = render_list(registry, method, params.get("cursor"), version)
    except (InvalidCursor, ValueError):
        return None
    return list_result(message["id"], members, is_modern=version == MODERN)


def _params_of(message: Mapping[str, Any]) -> _Params | None:
    """The parameters of a plain request; None for any other message."""
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
    """True if `_meta` is absent or has no effect on a JSON response."""
    if not isinstance(meta, dict):
        return meta is None
    members = cast(dict[str, Any], meta)
    return _is_idle(members, members)


def _is_idle(meta: Mapping[str, Any], names: Iterable[str]) -> bool:
    """True if these `_meta` members do not affect a JSON response: a progress token, or members that are not MCP's."""
    return all(_is_id(meta[name]) if name == _TOKEN else not any(ours in name for ours in _OURS) for name in names)


def _mirrors(request: McpRequest, method: str, name: str | None) -> bool:
    """True if the MCP headers equal the body's values, no header is repeated, and there is no `Mcp-Param-*` header."""
    headers = request.headers
    if headers.repeated:
        return False
    if _PARAMETER in headers.text and any(key.startswith(_PARAMETER) for key, _ in headers.raw):
        return False
    if request.version != MODERN or headers.get(b"mcp-method") != method.encode():
        return False
    detail = headers.get(b"mcp-name")
    if name is None:
        return detail is None
    return name.isascii() and detail == name.encode() and not name.startswith("=?")
