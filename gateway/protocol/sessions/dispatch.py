"""Dispatch of the messages that a session's client sends, for any transport: requests, responses, notifications."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, cast

import structlog
from mcp.server.connection import Connection
from mcp_types import (
    ClientCapabilities,
    InitializeRequestParams,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    ServerCapabilities,
    jsonrpc_message_adapter,
)
from msgspec import structs
from pydantic import ValidationError

from gateway.domain.events import RequestCancelled
from gateway.domain.primitives import Family
from gateway.domain.sessions import SessionRecord
from gateway.errors import RedisUnavailable
from gateway.protocol.http import jsonrpc
from gateway.protocol.http.responses import Body
from gateway.protocol.methods.capabilities import capabilities_of
from gateway.protocol.methods.sdk_runner import NullOutbound, SdkRunner, connection_of
from gateway.protocol.request_context import CURRENT_REQUEST, RequestContext
from gateway.protocol.sessions.limits import MAX_ID_BYTES
from gateway.protocol.sessions.peer import ClientChannel, SessionPeer
from gateway.protocol.sessions.response_sink import MessageSink
from gateway.protocol.sessions.running_requests import RequestKey, RunningRequests
from gateway.redis.sessions.keys import SessionKeys
from gateway.redis.sessions.stores import SessionStores

log = structlog.get_logger(__name__)

ClientMessage = JSONRPCRequest | JSONRPCNotification | JSONRPCResponse | JSONRPCError

_CANCELLED: Final = "notifications/cancelled"


def read_message(message: dict[str, Any]) -> ClientMessage | None:
    """Parse a JSON object as a JSON-RPC message; None if it is not valid.

    A request is not valid if its id is null, neither a string nor an integer, or longer than `MAX_ID_BYTES`. Such a
    message is not treated as a notification.
    """
    try:
        parsed = jsonrpc_message_adapter.validate_python(message, by_name=False)
    except ValidationError:
        return None
    if isinstance(parsed, JSONRPCNotification) and "id" in message:
        return None
    return None if isinstance(parsed, JSONRPCRequest) and not is_id(parsed.id) else parsed


def is_id(named: str | int) -> bool:
    """True if the id of a request is short enough to be stored while it runs."""
    return len(jsonrpc.request_id(named)) <= MAX_ID_BYTES


class SessionDispatcher:
    """Serves the messages of sessions; its only state is the set of requests that run at this replica."""

    def __init__(self, kernel: SdkRunner, stores: SessionStores, running: RunningRequests) -> None:
        self._kernel = kernel
        self._stores = stores
        self._running = running
        self._asking = ClientChannel(stores.bus, stores.spawn, stores.pending_requests, stores.preferences)

    async def begin(
        self, request: JSONRPCRequest, record: SessionRecord, context: RequestContext
    ) -> tuple[bytes, SessionRecord | None]:
        """The response to `initialize`, and the record of the session; no record if the request was refused."""
        capabilities = capabilities_of(context.registry)
        connection = Connection.for_loop(NullOutbound())
        reply, accepted = await self._kernel.run(request, connection, context, capabilities)
        if not accepted or connection.client_params is None:
            return reply, None
        new_record = replace(
            record,
            protocol_version=connection.protocol_version,
            client=_client_of(connection.client_params),
            revision=context.registry.revision,
            lists=_announced_lists(capabilities),
        )
        return reply, new_record

    async def run(
        self, request: JSONRPCRequest, record: SessionRecord, context: RequestContext, sink: MessageSink
    ) -> Body:
        """The response to any request except `initialize`."""
        if record.is_open:
            reply = await self._kernel.run_stateless(request, record.protocol_version, context, session=record.id)
            if reply is not None:
                return reply.body
        peer = self.peer(record, sink, request.params)
        CURRENT_REQUEST.set(structs.replace(context, peer=peer, session=record.id))
        try:
            text, _ = await self._kernel.run(request, connection_of(record), context, capabilities_of(context.registry))
        finally:
            await peer.close()
        return text

    def peer(self, record: SessionRecord, sink: MessageSink, params: Mapping[str, Any] | None) -> SessionPeer:
        """The peer of one request; it sends messages through the sink."""
        return SessionPeer(
            self._asking,
            sink,
            self._keys(record),
            revision=record.protocol_version,
            capabilities=_capabilities_of(record),
            token=_token_of(params),
        )

    async def handle_notification(self, message: ClientMessage, record: SessionRecord) -> None:
        """Store the client's response to a request, or cancel a request of the client; ignore all other messages.

        Raises:
            RedisUnavailable: the response may not have been stored.
        """
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            if isinstance(message.id, str):
                response = message.model_dump_json(by_alias=True, exclude_none=True, include={"result", "error"})
                await self._stores.pending_requests.accept(self._keys(record), message.id, response.encode())
        elif isinstance(message, JSONRPCNotification) and message.method == _CANCELLED:
            await self._cancel(message.params or {}, record)

    async def _cancel(self, params: Mapping[str, Any], record: SessionRecord) -> None:
        """Cancel the request here, or publish an event for the replica that runs it.

        A lost event has the same effect as a late cancellation.
        """
        request_id = params.get("requestId")
        if not isinstance(request_id, str | int) or isinstance(request_id, bool):
            return
        request = jsonrpc.request_id(request_id)
        if self._running.cancel(RequestKey(record.tenant, record.id, request)):
            return
        event = RequestCancelled(tenant=record.tenant, session=record.id, request=request.decode())
        try:
            await self._stores.bus.publish(event)
        except RedisUnavailable:
            log.debug("cancellation_lost")

    def _keys(self, record: SessionRecord) -> SessionKeys:
        return self._stores.sessions.keys(record.tenant, record.id)


def _client_of(params: InitializeRequestParams) -> dict[str, object]:
    return params.model_dump(by_alias=True, mode="json", exclude_none=True)


def _capabilities_of(record: SessionRecord) -> ClientCapabilities | None:
    """The client's capabilities; None before the session is open."""
    if not record.is_open:
        return None
    return ClientCapabilities.model_validate(record.client.get("capabilities", {}), by_name=False)


def _announced_lists(capabilities: ServerCapabilities) -> tuple[Family, ...]:
    """The lists for which change notifications were announced to the client."""
    capability_by_family = {
        Family.TOOL: capabilities.tools,
        Family.RESOURCE: capabilities.resources,
        Family.PROMPT: capabilities.prompts,
    }
    return tuple(
        family
        for family, capability in capability_by_family.items()
        if capability is not None and capability.list_changed
    )


def _token_of(params: Mapping[str, Any] | None) -> str | int | None:
    meta = (params or {}).get("_meta")
    token = cast(dict[str, Any], meta).get("progressToken") if isinstance(meta, dict) else None
    return token if isinstance(token, str | int) and not isinstance(token, bool) else None
