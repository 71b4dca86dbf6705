"""An MCP server of both eras on lines, for one client: standard streams, or a client in the same process.

The SDK's loop chooses the era by the client's first request, and runs each request as a task; the methods are those of
HTTP. Each request reads the current registry. Neither list changes nor subscriptions are declared.
"""

import secrets
import time
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Any, Protocol

import anyio
import structlog
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.models import InitializationOptions
from mcp.shared.message import SessionMessage
from mcp_types import (
    DiscoverResult,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCResponse,
    RequestParams,
    SetLevelRequestParams,
    jsonrpc_message_adapter,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from gateway.calls.pipeline import CallPipeline
from gateway.domain.fairness.task_supervisor import Spawn
from gateway.domain.identifiers import TenantId
from gateway.handlers.binding import BoundResource
from gateway.handlers.interfaces import LogLevel
from gateway.handlers.null_peer import NULL_PEER
from gateway.protocol.http.responses import joined
from gateway.protocol.http.results import STRUCTURED, list_result, tool_result
from gateway.protocol.methods.capabilities import capabilities_of, require
from gateway.protocol.methods.error_translation import ErrorTranslation
from gateway.protocol.methods.input_requests import LEVELS, levels_from
from gateway.protocol.methods.lists import LIST_TTL_MS, LISTS
from gateway.protocol.methods.primitive_methods import add_primitive_methods
from gateway.protocol.request_context import CURRENT_REQUEST, RawResult, RequestContext, SdkContext
from gateway.protocol.server_name import NAME
from gateway.protocol.stateless.request_state import request_state_middleware
from gateway.protocol.stdio.limits import DRAIN_S, STATE_KEY_BYTES
from gateway.protocol.stdio.messages import Refused, cancelled_by, id_of, not_a_message, parse_line
from gateway.protocol.stdio.open_requests import OpenRequests
from gateway.protocol.stdio.peer import StdioPeer
from gateway.protocol.stdio.streams import ClientGone, Oversized
from gateway.registry.registry import Registry
from gateway.telemetry.distribution import VERSION

log = structlog.get_logger(__name__)


class LineStreams(Protocol):
    """The lines of one client, each a JSON-RPC message; `StdioStreams` or a client in the same process."""

    @property
    def is_gone(self) -> bool:
        """True after a write failed because the client is gone."""
        ...

    def lines(self) -> AsyncGenerator[bytes | Oversized]:
        """Yield the client's lines until their end."""
        ...

    async def write(self, message: bytes) -> None:
        """Write one message; raise ClientGone without a client."""
        ...


class StdioServer:
    """Serves one client until it ends its stream or closes the other one; `registry` returns the current registry."""

    def __init__(self, calls: CallPipeline, registry: Callable[[], Registry], *, spawn: Spawn) -> None:
        self._registry = registry
        self._open = OpenRequests[_BypassedResult | None]()
        self._levels: frozenset[LogLevel] = frozenset(LEVELS)
        self._server: Server[Any] = Server(NAME, version=VERSION)
        add_primitive_methods(self._server, calls, _find_resource, spawn=spawn)
        self._server.add_request_handler("logging/setLevel", SetLevelRequestParams, self._set_level)
        self._server.add_request_handler("server/discover", RequestParams, _discover)
        state = request_state_middleware([secrets.token_bytes(STATE_KEY_BYTES)], _UsedStates())
        self._server.middleware[:] = [self._in_context, ErrorTranslation(calls.audit), *state]

    async def serve(self, streams: LineStreams) -> None:
        """Serve the lines of these streams to their end."""
        send_in, receive_in = anyio.create_memory_object_stream[SessionMessage | Exception]()
        send_out, receive_out = anyio.create_memory_object_stream[SessionMessage]()
        capabilities = capabilities_of(self._registry(), notifies=False)
        options = InitializationOptions(server_name=NAME, server_version=VERSION, capabilities=capabilities)
        async with anyio.create_task_group() as group:
            group.start_soon(self._receive, streams, send_in)
            group.start_soon(self._send, receive_out, streams)
            await self._server.run(receive_in, send_out, options)

    async def _receive(self, streams: LineStreams, to: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        async with to:
            try:
                async for line in streams.lines():
                    try:
                        await to.send(SessionMessage(self._accept(line)))
                    except Refused as refused:
                        await streams.write(refused.response)
                with anyio.move_on_after(0 if streams.is_gone else DRAIN_S):
                    await self._open.wait_empty()
            except (ClientGone, anyio.BrokenResourceError):
                log.info("client_gone")

    def _accept(self, line: bytes | Oversized) -> JSONRPCMessage:
        """Parse a line and register its request, if any.

        Raises:
            Refused: the line is not a message, or its request cannot run now.
        """
        message = parse_line(line)
        try:
            sdk_message = jsonrpc_message_adapter.validate_python(message, by_name=False)
        except ValidationError:
            raise not_a_message(message) from None
        if id_of(message) is not None:
            self._open.add(message, None)
        elif (cancelled := cancelled_by(message)) is not None:
            self._open.remove(cancelled)  # the SDK sends no response to a cancelled request
        return sdk_message

    async def _send(self, messages: MemoryObjectReceiveStream[SessionMessage], streams: LineStreams) -> None:
        async with messages:
            try:
                async for message in messages:
                    await streams.write(self._encode(message))
            except ClientGone:
                log.info("client_gone")

    def _encode(self, sent: SessionMessage) -> bytes:
        message = sent.message
        if isinstance(message, JSONRPCResponse | JSONRPCError) and message.id is not None:
            bypassed = self._open.remove(message.id)
            members = None if bypassed is None else bypassed.result.members
            if isinstance(message, JSONRPCResponse) and bypassed is not None and members is not None:
                write = list_result if bypassed.is_list else tool_result
                return joined(write(message.id, members, is_modern=bypassed.is_modern).body)
        return message.model_dump_json(by_alias=True, exclude_unset=True).encode()

    async def _in_context(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Run a request with its context, which the methods read."""
        is_modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        is_list = ctx.method in LISTS
        may_bypass = is_list or (ctx.method == "tools/call" and (is_modern or ctx.protocol_version in STRUCTURED))
        finished = RawResult() if may_bypass else None
        if finished is not None and ctx.request_id is not None:
            self._open.replace(ctx.request_id, _BypassedResult(finished, is_modern=is_modern, is_list=is_list))
        peer = NULL_PEER if is_modern else StdioPeer(ctx, self._levels)
        correlation_id = secrets.token_hex(8)
        registry = self._registry()
        CURRENT_REQUEST.set(RequestContext(registry.principal, registry, correlation_id, peer=peer, finished=finished))
        result = await call_next(ctx)
        if isinstance(peer, StdioPeer):
            await peer.progress_gap.wait()
        return result

    async def _set_level(self, ctx: SdkContext, params: SetLevelRequestParams) -> HandlerResult:
        """Send only log messages of this level and above from now on, in the handshake revisions."""
        require(CURRENT_REQUEST.get().registry.is_interactive, ctx.method)
        self._levels = frozenset(levels_from(params.level))
        return {}


@dataclass(frozen=True, slots=True)
class _BypassedResult:
    """The result of a running tool call or list request, whose bytes bypass the SDK."""

    result: RawResult
    is_modern: bool
    is_list: bool


class _UsedStates:
    """The used states of this process, with their expiry times; see `Nonces`."""

    def __init__(self) -> None:
        self._used: dict[str, float] = {}

    async def use(self, tenant: TenantId, nonce: str, *, for_s: int) -> bool:
        """Mark the id as used; False if it is marked already."""
        del tenant
        now = time.monotonic()
        self._used = {used: until for used, until in self._used.items() if until > now}
        if nonce in self._used:
            return False
        self._used[nonce] = now + for_s
        return True

    async def free(self, tenant: TenantId, nonce: str) -> None:
        """Release an id that was not used after all."""
        del tenant
        self._used.pop(nonce, None)


async def _find_resource(registry: Registry, uri: str, _: str | None) -> BoundResource | None:
    return await registry.resource(uri)


async def _discover(_: SdkContext, __: RequestParams) -> HandlerResult:
    return DiscoverResult(
        supported_versions=list(MODERN_PROTOCOL_VERSIONS),
        capabilities=capabilities_of(CURRENT_REQUEST.get().registry, notifies=False),
        ttl_ms=LIST_TTL_MS,
        cache_scope="private",
    )
