"""Protocol revisions with an `initialize` handshake (2024-11-05 to 2025-11-25) over Streamable HTTP, without the SDK's
transports.

A session is a record in Redis, so any replica can serve any of its requests. A request that may send messages runs on a
separate SDK connection. Messages before the response, and a slow response, are sent on a stored stream
(`gateway.protocol.sessions.response_sink`). A client that loses its connection resumes its streams at any replica.
"""

from collections.abc import Mapping
from typing import Any

import structlog
from mcp_types import JSONRPCRequest

from gateway.domain.audit import RuleKind
from gateway.domain.sessions import SessionRecord
from gateway.errors import Conflict, DecidingRule, NotFound
from gateway.protocol.fast_path import FastPath, is_candidate
from gateway.protocol.http import jsonrpc
from gateway.protocol.http.request import McpRequest
from gateway.protocol.http.responses import Body, id_of, invalid_request, size_of
from gateway.protocol.http.sse_encoding import MEDIA_TYPE, parse_last_event_id
from gateway.protocol.http.sse_streams import OpenStreams
from gateway.protocol.methods.lists import LISTS
from gateway.protocol.request_context import RequestContext
from gateway.protocol.sessions.dispatch import SessionDispatcher, is_id, read_message
from gateway.protocol.sessions.get_stream import GetStreams, StreamRequest
from gateway.protocol.sessions.limits import MAX_ID_BYTES, MAX_STORED_LIST_BYTES
from gateway.protocol.sessions.peer import SessionPeer
from gateway.protocol.sessions.response_sink import SESSION_HEADER, PostSink, session_headers
from gateway.protocol.sessions.running_requests import RequestExchange, RequestKey, RunningRequests
from gateway.redis.sessions.records import new_session_id
from gateway.redis.sessions.stores import SessionStores
from gateway.telemetry.log_context import name_client

log = structlog.get_logger(__name__)

_Call = JSONRPCRequest | dict[str, Any]
"""A request; a candidate of the fast path is not validated by the SDK yet."""


class SessionTransport:
    """Serves the messages of sessions and stores no state of a session between requests."""

    def __init__(
        self,
        dispatcher: SessionDispatcher,
        stores: SessionStores,
        fast_path: FastPath,
        get_streams: GetStreams,
        *,
        running: RunningRequests,
        streams: OpenStreams,
    ) -> None:
        self._dispatcher = dispatcher
        self._stores = stores
        self._fast_path = fast_path
        self._get_streams = get_streams
        self._running = running
        self._streams = streams

    async def post(self, request: McpRequest, message: dict[str, Any], context: RequestContext) -> None:
        """Serve one message: respond to a request, acknowledge all other messages."""
        parsed = message if is_candidate(message) else read_message(message)
        if parsed is None:
            await request.respond(400, invalid_message_response(message, context))
            return
        if isinstance(parsed, JSONRPCRequest) and parsed.method == "initialize":
            await self._initialize(request, parsed, context)
            return
        record = await self._session(request, context, id_of(message))
        if record is None:
            return
        if isinstance(parsed, JSONRPCRequest | dict):
            await self._serve(request, parsed, record, context)
        else:
            await self._dispatcher.handle_notification(parsed, record)
            await request.respond(202, headers=session_headers(record))

    async def get(self, request: McpRequest, context: RequestContext) -> None:
        """Open a stream or resume one.

        Raises:
            BadInput: `Last-Event-ID` is malformed.
            LimitExceeded: too many streams are open.
            NotFound: the session has ended.
            Unavailable: Redis is unavailable, or this replica is shutting down.
        """
        record = await self._session(request, context)
        if record is None:
            return
        headers = session_headers(record)
        stream_request = StreamRequest(request=request, record=record, context=context, headers=headers)
        last_event_id = request.headers.get(b"last-event-id")
        position = parse_last_event_id(last_event_id.decode("latin-1")) if last_event_id else None
        if position is None or position.is_standalone:
            await self._get_streams.serve_standalone(stream_request, position)
        else:
            await self._get_streams.resume(stream_request, position)

    async def delete(self, request: McpRequest, context: RequestContext) -> None:
        """End the session and cancel its running requests."""
        record = await self._session(request, context)
        if record is not None:
            await self._stores.sessions.remove(record.tenant, record.id)
            self._running.end_session(record.tenant, record.id)
            log.info("session_ended", session=record.id[:8])
            await request.respond(200)

    async def _initialize(self, request: McpRequest, handshake: JSONRPCRequest, context: RequestContext) -> None:
        registry = context.registry
        blank = SessionRecord(
            id=new_session_id(),
            tenant=context.principal.tenant,
            subject=context.principal.subject,
            profile=registry.profile,
            protocol_version="",
            client={},
        )
        reply, record = await self._dispatcher.begin(handshake, blank, context)
        if record is None:
            await request.respond(200, reply)
            return
        await self._stores.sessions.create(record, cap=registry.view.snapshot.policy.limits.sessions)
        log.info("session_opened", session=record.id[:8], protocol_version=record.protocol_version)
        await request.respond(200, reply, headers=session_headers(record))

    async def _serve(self, request: McpRequest, call: _Call, record: SessionRecord, context: RequestContext) -> None:
        """Run a request and respond: with JSON if it is fast and sends no messages, else with a stream if accepted.

        The request runs to its end even if the client disconnects: in these revisions a disconnect cancels nothing.
        """
        request_id: str | int = call.id if isinstance(call, JSONRPCRequest) else call["id"]
        key = RequestKey(record.tenant, record.id, jsonrpc.request_id(request_id))
        stream = self._streams.untracked(request.send, context.principal)
        sink = PostSink(record, key.request, stream, self._stores, may_stream=request.accepts(MEDIA_TYPE))
        spawn, correlation_id = self._stores.spawn, context.correlation_id
        try:
            with RequestExchange(self._running, key, sink, spawn=spawn, correlation_id=correlation_id) as exchange:
                await exchange.serve(self._run_request(request, call, record, context, sink=sink))
        except Conflict as error:
            refused = invalid_request(error.message, correlation_id)  # the id belongs to the other request
            await request.respond(400, refused, headers=session_headers(record))

    async def _run_request(
        self, request: McpRequest, call: _Call, record: SessionRecord, context: RequestContext, *, sink: PostSink
    ) -> Body:
        """The response to a request; it is a stream from its start if the client prefers a stream to JSON.

        A large list is JSON, which every client accepts: a stream would store its megabytes in Redis.
        """
        prefers_stream = request.prefers(MEDIA_TYPE, to="application/json")
        is_list = (call.method if isinstance(call, JSONRPCRequest) else call["method"]) in LISTS
        if prefers_stream and not is_list:
            await sink.defer()
        body = await self._reply(call, record, context, sink)
        if prefers_stream and is_list and size_of(body) <= MAX_STORED_LIST_BYTES:  # guard: lists-not-stored
            await sink.defer()
        return body

    async def _reply(self, call: _Call, record: SessionRecord, context: RequestContext, sink: PostSink) -> Body:
        if isinstance(call, JSONRPCRequest):
            return await self._dispatcher.run(call, record, context, sink)

        def open_peer(params: Mapping[str, Any]) -> SessionPeer | None:
            return self._dispatcher.peer(record, sink, params) if record.is_open else None

        reply = await self._fast_path.handshake(call, context, record.protocol_version, open_peer)
        if reply is not None:
            return reply.body
        return await self._dispatcher.run(JSONRPCRequest.model_validate(call, by_name=False), record, context, sink)

    async def _session(
        self, request: McpRequest, context: RequestContext, request_id: str | int | None = None
    ) -> SessionRecord | None:
        """The session that the request names; None if it names none, and the refusal was sent.

        Raises:
            NotFound: the client has no such session.
        """
        session_id = request.headers.get(SESSION_HEADER)
        if session_id is None or SESSION_HEADER in request.headers.repeated:
            detail = "the Mcp-Session-Id header is required exactly once"
            await request.respond(400, invalid_request(detail, context.correlation_id, request_id=request_id))
            return None
        # guard: session-adoption
        record = await self._stores.sessions.find(context.principal.tenant, session_id.decode("latin-1"))
        record = check_session(record, context, transport="http")
        name_client(record.client.get("clientInfo"))
        return record


def invalid_message_response(message: dict[str, Any], context: RequestContext) -> bytes:
    """Error response to a body that is not a valid JSON-RPC message, for example because of its id."""
    detail, named = "the body is not one JSON-RPC message", id_of(message)
    if "method" in message and "id" in message and (named is None or not is_id(named)):
        detail = f"{detail}: its id must be a string or an integer of at most {MAX_ID_BYTES} bytes"
    return invalid_request(detail, context.correlation_id, request_id=named)


def check_session(record: SessionRecord | None, context: RequestContext, *, transport: str) -> SessionRecord:
    """Return the session if it is of this transport, and belongs to the caller.

    Raises:
        NotFound: the client has no such session; only the audit trail distinguishes it from another client's.
    """
    if record is None or record.transport != transport:
        raise NotFound("session not found")
    if not belongs(record, context):
        rule = DecidingRule(RuleKind.OWNER, words="the session is of another subject or profile")
        raise NotFound("session not found", rule=rule)
    return record


def belongs(record: SessionRecord, context: RequestContext) -> bool:
    """True if the session belongs to the caller and was opened under the profile of this URL."""
    # guard: session-owner, session-profile
    return (record.subject, record.profile) == (context.principal.subject, context.registry.profile)
