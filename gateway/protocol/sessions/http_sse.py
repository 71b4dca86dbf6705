"""HTTP+SSE of 2024-11-05: one stream for all messages of the server, and a separate URL for the client's messages.

A session starts with its stream, before the handshake, and ends with the stream. The client's messages may reach any
replica. The responses are written into the session's log, from which the stream sends them. If the replica with the
stream has ended, messages for the session are refused with 404.
"""

from typing import Any
from urllib.parse import parse_qs

import anyio
import structlog
from mcp_types import JSONRPCRequest

from gateway.domain.sessions import SessionRecord
from gateway.errors import Conflict, NotFound, RedisUnavailable
from gateway.protocol.http import jsonrpc, sse_encoding
from gateway.protocol.http.request import McpRequest
from gateway.protocol.http.responses import Body, id_of, invalid_request, refusal
from gateway.protocol.request_context import RequestContext
from gateway.protocol.sessions.dispatch import SessionDispatcher, read_message
from gateway.protocol.sessions.get_stream import GetStreams, StreamRequest
from gateway.protocol.sessions.limits import CLOSE_TIMEOUT_S
from gateway.protocol.sessions.response_sink import SseSink
from gateway.protocol.sessions.running_requests import RequestExchange, RequestKey, RunningRequests
from gateway.protocol.sessions.transport import check_session, invalid_message_response
from gateway.redis.sessions.records import new_session_id
from gateway.redis.sessions.stores import SessionStores
from gateway.telemetry.log_context import name_client

log = structlog.get_logger(__name__)

_NOT_INITIALIZED = "the session is not initialized; send initialize and wait for its response before other requests"


class HttpSseTransport:
    """Serves `/sse` and `/messages`."""

    def __init__(
        self, calls: SessionDispatcher, stores: SessionStores, listening: GetStreams, running: RunningRequests
    ) -> None:
        self._calls = calls
        self._stores = stores
        self._listening = listening
        self._running = running

    async def get(self, request: McpRequest, context: RequestContext) -> None:
        """Open a session and its stream; when one of them ends, the other ends too.

        Raises:
            LimitExceeded: too many sessions or streams are open.
            Unavailable: Redis is unavailable, or this replica is shutting down.
        """
        sessions, registry = self._stores.sessions, context.registry
        record = SessionRecord(
            id=new_session_id(),
            tenant=context.principal.tenant,
            subject=context.principal.subject,
            profile=registry.profile,
            protocol_version="2024-11-05",
            client={},
            revision=registry.revision,
            transport="sse",
            holder=self._stores.bus.replica,
        )
        await sessions.create(record, cap=registry.view.snapshot.policy.limits.sessions)
        path = f"{request.path.removesuffix('/sse')}/messages?session_id={record.id}"
        greeting = sse_encoding.endpoint_event(path)
        stream_request = StreamRequest(request=request, record=record, context=context, greeting=greeting)
        try:
            await self._listening.serve_standalone(stream_request)
        finally:
            with anyio.move_on_after(CLOSE_TIMEOUT_S, shield=True):
                await self._end(record)

    async def post(self, request: McpRequest, message: dict[str, Any], context: RequestContext) -> None:
        """Accept one message; its response is sent on the stream."""
        record = await self._session(request, context)
        if record is None:
            gone = NotFound("session not found")
            await request.respond(404, refusal(gone, context.correlation_id, request_id=id_of(message)))
            return
        parsed = read_message(message)
        if parsed is None:
            await request.respond(400, invalid_message_response(message, context))
            return
        if not isinstance(parsed, JSONRPCRequest):
            await self._calls.handle_notification(parsed, record)
            await request.respond(202)
            return
        key = RequestKey(record.tenant, record.id, jsonrpc.request_id(parsed.id))
        sink = SseSink(record, key.request, self._stores)
        spawn, correlation_id = self._stores.spawn, context.correlation_id
        try:
            with RequestExchange(self._running, key, sink, spawn=spawn, correlation_id=correlation_id) as exchange:
                await request.respond(202)
                try:
                    await exchange.serve(self._run(parsed, record, context, sink))
                except Conflict as error:  # the id belongs to another request, so this error omits the id
                    await sink.respond(invalid_request(error.message, correlation_id))
        except Conflict as error:
            await request.respond(400, invalid_request(error.message, context.correlation_id))

    async def _run(
        self, request: JSONRPCRequest, record: SessionRecord, context: RequestContext, sink: SseSink
    ) -> Body:
        if request.method != "initialize":
            if not record.is_open and request.method != "ping":
                return invalid_request(_NOT_INITIALIZED, context.correlation_id, request_id=request.id)
            return await self._calls.run(request, record, context, sink)
        reply, new_record = await self._calls.begin(request, record, context)
        if new_record is not None:
            try:
                await self._stores.sessions.replace(new_record)
            except RedisUnavailable as error:  # the POST has its response: the error goes to the stream
                return refusal(error, context.correlation_id, request_id=request.id)
            log.info("session_opened", session=record.id[:8], protocol_version=new_record.protocol_version)
        return reply

    async def _session(self, request: McpRequest, context: RequestContext) -> SessionRecord | None:
        session_ids = parse_qs(request.query.decode("latin-1")).get("session_id", [])
        if len(session_ids) != 1:
            return None
        record = await self._stores.sessions.find(context.principal.tenant, session_ids[0])
        record = check_session(record, context, transport="sse")
        name_client(record.client.get("clientInfo"))
        if record.holder and not await self._stores.lives.is_alive(record.holder):
            await self._end(record)  # no response could be delivered, so the client must reconnect
            return None
        return record

    async def _end(self, record: SessionRecord) -> None:
        self._running.end_session(record.tenant, record.id)
        try:
            await self._stores.sessions.remove(record.tenant, record.id)
        except RedisUnavailable:
            log.warning("session_not_ended", session=record.id[:8])  # the record expires by itself
