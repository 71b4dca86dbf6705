"""The fast path in front of the SDK, for plain `tools/call` and list requests.

It serves a request only if it recognises every member. Any other request goes to the SDK unchanged, and the SDK reports
all violations of the protocol. The body has already passed the strict parser. A call goes through the same pipeline as
in the SDK's handlers (`gateway.calls.pipeline`), and an error of the pipeline becomes the response. The rendered bytes
of a result, or of a list page, are copied into the response and never decoded.
"""

from collections.abc import Callable, Iterable, Mapping
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

from gateway.calls import result_rendering
from gateway.calls.pipeline import CallPipeline
from gateway.domain.calls.mcp_tasks import TaskSupport
from gateway.domain.fairness.bounded_cache import BoundedCache
from gateway.domain.refusals import AccountRequired
from gateway.domain.tools import PrimitiveOrigin
from gateway.errors import CapabilityMissing, GatewayError, InvalidCursor
from gateway.handlers.binding import BoundTool
from gateway.handlers.interfaces import Peer
from gateway.handlers.null_peer import NULL_PEER, PAGES_PEER
from gateway.protocol.errors import TASKS, internal_error, to_mcp, to_mcp_in, to_url_elicitation
from gateway.protocol.http.request import McpRequest
from gateway.protocol.http.results import STRUCTURED, JsonRpcReply, error_result, list_result, tool_result
from gateway.protocol.limits import MAX_ENVELOPE_BYTES, MAX_ENVELOPES, MAX_ID_LENGTH
from gateway.protocol.methods.input_requests import shows_pages
from gateway.protocol.methods.lists import LISTS, is_declared, render_list
from gateway.protocol.request_context import RequestContext
from gateway.protocol.sessions.peer import SessionPeer

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
_MCP_MARKS: Final = ("mcp", "modelcontextprotocol", "progress")
"""Substrings that identify a `_meta` member as MCP's own; other members of `_meta` do not affect a response."""

_REQUEST_CAPABILITIES = frozenset({"elicitation", "sampling", "roots"})
"""Client capabilities that allow requests to the client."""

_REQUIRED = TaskSupport.REQUIRED  # an enum lookup costs more than a function call

_PARAMETER = b"mcp-param-"
_encode = msgspec.json.encode
_Params = Mapping[str, Any]
OpenPeer = Callable[[Mapping[str, Any]], SessionPeer | None]
"""Makes the peer of a session's request from its parameters; None before the session is open."""


class FastPath:
    """Serves the requests that it recognises; its only state is a cache of envelopes that the SDK found valid."""

    def __init__(self, calls: CallPipeline) -> None:
        self._calls = calls
        self._valid_envelopes = BoundedCache[bytes, None](MAX_ENVELOPES)

    @property
    def remembered(self) -> int:
        """Number of envelopes that are cached as valid."""
        return len(self._valid_envelopes)

    async def modern(
        self, request: McpRequest, message: Mapping[str, Any], context: RequestContext
    ) -> JsonRpcReply | None:
        """The response to a plain request of 2026-07-28; None, without any effect, for all other requests."""
        params = _params_of(message)
        if params is None or not _mirrors(request, message["method"], params.get("name")):  # guard: plain-mirrored
            return None
        if not self.is_valid_envelope(params.get("_meta")):
            return None
        if message["method"] != _CALL:
            return await _list(message, params, context, MODERN)
        return await self._call(message["id"], params, context, None)

    async def handshake(
        self, message: Mapping[str, Any], context: RequestContext, version: str, open_peer: OpenPeer
    ) -> JsonRpcReply | None:
        """The response to a plain request in a session; None, without any effect, for all other requests.

        `open_peer` returns the peer of a tool that may send messages; the response sink then decides about a stream.
        """
        params = _params_of(message)
        if params is None or not _is_bare(params.get("_meta")):
            return None
        if message["method"] != _CALL:
            return await _list(message, params, context, version)
        if version not in STRUCTURED:
            return None
        return await self._call(message["id"], params, context, open_peer)

    async def _call(
        self, request_id: int | str, params: _Params, context: RequestContext, open_peer: OpenPeer | None
    ) -> JsonRpcReply | None:
        is_modern, peer = open_peer is None, None
        registry, name, correlation_id = context.registry, params["name"], context.correlation_id
        try:
            bound = await registry.tool(name)
            if bound is None or registry.mirrored_schema(name) is not None:
                return None
            if is_modern and _may_be_task(bound, params["_meta"]):  # guard: tasks-not-on-the-fast-path
                return None
            silent: Peer | None = NULL_PEER
            if bound.is_interactive:
                peer = None if open_peer is None else open_peer(params)
                silent = _silent_peer(bound, params["_meta"]) if is_modern else None
                if peer is None and silent is None:
                    return None
            arguments: dict[str, object] = params.get("arguments") or {}
            members = await self._calls.run(
                context.principal,
                bound,
                arguments,
                correlation_id=correlation_id,
                peer=peer or silent or NULL_PEER,
                lookup=registry,
            )
        except AccountRequired as required:
            return await _show_account_page(request_id, params, required, context, open_peer=open_peer)
        except GatewayError as error:
            if is_modern or not isinstance(error, CapabilityMissing):
                found = to_mcp_in(MODERN, error, correlation_id) if is_modern else to_mcp(error, correlation_id)
                return error_result(request_id, found.error, is_modern=is_modern)
            members = result_rendering.failure(error, correlation_id)  # handshake revisions have no such error
        except Exception:
            log.exception("method_failed", method=_CALL, correlation_id=correlation_id)
            return error_result(request_id, internal_error(correlation_id), is_modern=is_modern)
        finally:
            if peer is not None:
                await peer.close()
        return tool_result(request_id, registry.finish_result(members, is_modern=is_modern), is_modern=is_modern)

    def is_valid_envelope(self, meta: object) -> bool:
        """True if the SDK accepts the envelope and the rest of `_meta` has no effect; small envelopes are cached."""
        if not isinstance(meta, dict):
            return False
        members = cast(dict[str, Any], meta)
        envelope = {key: members[key] for key in _ENVELOPE if key in members}
        if envelope.get(PROTOCOL_VERSION_META_KEY) != MODERN or not _is_idle(members, members.keys() - envelope):
            return False
        seen = _encode(envelope)
        if seen in self._valid_envelopes:
            return True
        try:
            surface.validate_client_request("tools/list", MODERN, {"_meta": envelope})
        except ValidationError:
            return False
        if len(seen) <= MAX_ENVELOPE_BYTES:  # guard: small-envelopes-remembered
            self._valid_envelopes[seen] = None
        return True


async def _show_account_page(
    request_id: int | str,
    params: _Params,
    required: AccountRequired,
    context: RequestContext,
    *,
    open_peer: OpenPeer | None,
) -> JsonRpcReply | None:
    """The response to a call whose user has to connect an account; None if the SDK's path opens the page."""
    is_modern, correlation_id = open_peer is None, context.correlation_id
    if is_modern and not _REQUEST_CAPABILITIES.isdisjoint(params["_meta"][CLIENT_CAPABILITIES_META_KEY]):
        return None
    if open_peer is not None and (peer := open_peer(params)) is not None:
        opens_pages = peer.can("elicitation.url")
        await peer.close()
        if opens_pages:
            return error_result(request_id, to_url_elicitation(required, correlation_id).error, is_modern=False)
    members = context.registry.finish_result(result_rendering.failure(required, correlation_id), is_modern=is_modern)
    return tool_result(request_id, members, is_modern=is_modern)


def _silent_peer(bound: BoundTool, meta: Mapping[str, Any]) -> Peer | None:
    """The peer of a call whose result no message can precede; None for other calls.

    These are calls of live tools, if the client can receive neither requests nor log messages.
    """
    capabilities = meta[CLIENT_CAPABILITIES_META_KEY]
    if bound.tool.origin is not PrimitiveOrigin.LIVE or bound.policy.needs_person or LOG_LEVEL_META_KEY in meta:
        return None
    if not _REQUEST_CAPABILITIES.isdisjoint(capabilities):
        return None
    return PAGES_PEER if shows_pages(capabilities.get("extensions")) else NULL_PEER


def _may_be_task(bound: BoundTool, meta: Mapping[str, Any]) -> bool:
    """True if the tool requires tasks, or the client declared them."""
    return bound.task_support is _REQUIRED or TASKS in (meta[CLIENT_CAPABILITIES_META_KEY].get("extensions") or ())


def is_candidate(message: Mapping[str, Any]) -> bool:
    """True if the message has the members of a plain request; its headers and `_meta` are not checked here."""
    return _params_of(message) is not None


async def _list(
    message: Mapping[str, Any], params: _Params, context: RequestContext, version: str
) -> JsonRpcReply | None:
    """The response with a rendered page; None if the list is undeclared or fails, so that the SDK reports the error."""
    registry, method = context.registry, message["method"]
    if not is_declared(registry, method):
        return None
    try:
        members = await render_list(registry, method, params.get("cursor"), version)
    except InvalidCursor:
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
    return len(value) <= MAX_ID_LENGTH if isinstance(value, str) else type(value) is int


def _is_bare(meta: object) -> bool:
    """True if `_meta` is absent or has no effect on a JSON response."""
    if not isinstance(meta, dict):
        return meta is None
    members = cast(dict[str, Any], meta)
    return _is_idle(members, members)


def _is_idle(meta: Mapping[str, Any], names: Iterable[str]) -> bool:
    """True if these `_meta` members do not affect a JSON response: a progress token, or members that are not MCP's."""
    return all(_is_id(meta[name]) if name == _TOKEN else not any(ours in name for ours in _MCP_MARKS) for name in names)


def _mirrors(request: McpRequest, method: str, name: str | None) -> bool:
    """True if the MCP headers equal the body's values, no header is repeated, and there is no `Mcp-Param-*` header."""
    headers = request.headers
    if headers.repeated:
        return False
    if _PARAMETER in headers.text and any(key.startswith(_PARAMETER) for key, _ in headers.raw):
        return False
    if request.version != MODERN or headers.get(b"mcp-method") != method.encode():
        return False
    name_header = headers.get(b"mcp-name")
    if name is None:
        return name_header is None
    return name.isascii() and name_header == name.encode() and not name.startswith("=?")
