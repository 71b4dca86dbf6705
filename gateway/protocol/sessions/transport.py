"""The handshake revisions (2024-11-05 to 2025-11-25) over Streamable HTTP, without the SDK's transports.

A session is a record in Redis, so any replica can serve any of its requests. A request that may send messages runs on
a separate SDK connection. Messages before the response, and a slow response, go to a stream that is stored
(`gateway.protocol.sessions.response_sink`). A client whose connection breaks resumes its streams at any replica.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

import structlog
from mcp_types import JSONRPCRequest

from gateway.domain.sessions import SessionRecord
from gateway.errors import Conflict, NotFound
from gateway.protocol.fast_path import FastPath, is_candidate
from gateway.protocol.http import jsonrpc
from gateway.protocol.http.request import McpRequest
from gateway.protocol.http.responses import Headers, id_of, invalid_request, refusal
from gateway.protocol.http.sse_encoding import MEDIA_TYPE, parse_last_event_id
from gateway.protocol.http.sse_streams import OpenStreams
from gateway.protocol.request_context import RequestContext
from gateway.protocol.sessions.dispatch import MAX_ID_BYTES, SessionDispatcher, is_id, read_message
from gateway.protocol.sessions.get_stream import FIRST_PRIMED, GetStreams, StreamRequest
from gateway.protocol.sessions.response_sink import PostRequest, PostSink, ResponseSink
from gateway.protocol.sessions.running_requests import TAKEN, RequestKey, RunningRequest, RunningRequests
from gateway.protocol.sessions.slow_requests import SlowRequestTimer
from gateway.redis.sessions.records import new_session_id
from gateway.redis.sessions.stores import SessionStores

log = structlog.get_logger(__name__)

SESSION_HEADER: Final = b"mcp-session-id"
Work = Callable[[PostSink], Awaitable[bytes]]


class SessionTransport:
    """Serves the messages of sessions and stores no state of a session between requests."""

    def __init__(
        self,
        calls: SessionDispatcher,
        stores: SessionStores,
        plain: FastPath,
        listening: GetStreams,
        running: RunningRequests,
        streams: OpenStreams,
    ) -> None:
        self._calls = calls
        self._stores = stores
        self._plain = plain
        self._listening = listening
        self._running = running
        self._streams = streams

    async def post(self, request: McpRequest, message: dict[str, Any], context: RequestContext) -> None:
        """Serve one message: respond to a request, acknowledge everything else."""
        if is_candidate(message):
            record = await self._session(request, context, message["id"])
            if record is not None:
                work = partial(self._answer_plainly, message, record, context)
                await self._answer(request, record, message["id"], context, _as_wanted(request, work))
            return
        detail = read_message(message)
        if detail is None:
            await request.respond(400, not_a_message(message, context))
            return
        if isinstance(detail, JSONRPCRequest) and detail.method == "initialize":
            await self._initialize(request, detail, context)
            return
        record = await self._session(request, context, id_of(message))
        if record is None:
            return
        if isinstance(detail, JSONRPCRequest):
            work = partial(self._calls.run, detail, record, context)
            await self._answer(request, record, detail.id, context, _as_wanted(request, work))
        else:
            await self._calls.handle_notification(detail, record)
            await request.respond(202, headers=_session_headers(record))

    async def get(self, request: McpRequest, context: RequestContext) -> None:
        """Open a stream or resume one.

        Raises:
            BadInput: `Last-Event-ID` names no position.
            LimitExceeded: too many streams are open.
            NotFound: the session has ended.
            Unavailable: Redis is unavailable, or this replica is about to end.
        """
        if not request.accepts(MEDIA_TYPE):
            text = "Accept must include text/event-stream"
            await request.respond(406, invalid_request(text, context.correlation_id))
            return
        record = await self._session(request, context)
        if record is None:
            return
        headers = _session_headers(record)
        stream_request = StreamRequest(request=request, record=record, context=context, headers=headers)
        named = request.headers.get(b"last-event-id")
        place = parse_last_event_id(named.decode("latin-1")) if named else None
        if place is None or place.is_standalone:
            await self._listening.serve_standalone(stream_request, place)
        else:
            await self._listening.resume(stream_request, place)

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
        reply, record = await self._calls.begin(handshake, blank, context)
        if record is None:
            await request.respond(200, reply)
            return
        await self._stores.sessions.create(record, cap=registry.view.snapshot.policy.limits.sessions)
        log.info("session_opened", session=record.id[:8], protocol_version=record.protocol_version)
        await request.respond(200, reply, headers=_session_headers(record))

    async def _answer(
        self, request: McpRequest, record: SessionRecord, named: str | int, context: RequestContext, work: Work
    ) -> None:
        """Run a request and respond: with JSON if it is fast and sends no messages, else with a stream if accepted.

        The request runs to its end even if the client disconnects: in these revisions a disconnect cancels nothing.
        """
        posted = PostRequest(
            keys=self._calls.keys(record),
            request=jsonrpc.request_id(named),
            headers=_session_headers(record),
            is_resumable=record.protocol_version >= FIRST_PRIMED,
            may_stream=partial(request.accepts, MEDIA_TYPE),
        )
        request_run = RunningRequest(RequestKey(record.tenant, record.id, posted.request), context.correlation_id)
        stream = self._streams.untracked(request.send, context.principal)
        sink = PostSink(posted, stream, self._stores, give_up=request_run.give_up)
        try:
            with self._running.track(request_run):
                slow_timer = SlowRequestTimer(self._stores.bus.spawn, sink.claim, sink.defer)
                try:
                    text = await request_run.run(partial(work, sink), sink)
                finally:
                    slow_timer.cancel()
                if sink.is_refused:
                    raise Conflict(TAKEN)
                await sink.respond(text)
        except Conflict as error:
            refused = invalid_request(error.message, context.correlation_id)  # the id belongs to the other request
            await request.respond(400, refused, headers=_session_headers(record))
        finally:
            sink.abandon()

    async def _answer_plainly(
        self, message: dict[str, Any], record: SessionRecord, context: RequestContext, sink: ResponseSink
    ) -> bytes:
        reply = await self._plain.handshake(message, context, record.protocol_version)
        if reply is not None:
            return reply.body
        request = JSONRPCRequest.model_validate(message, by_name=False)
        return await self._calls.run(request, record, context, sink)

    async def _session(
        self, request: McpRequest, context: RequestContext, request_id: str | int | None = None
    ) -> SessionRecord | None:
        """The session that the request names; None if there is no such session, and the refusal was sent."""
        named = request.headers.get(SESSION_HEADER)
        if named is None or SESSION_HEADER in request.headers.repeated:
            detail = "the Mcp-Session-Id header has to be there once"
            await request.respond(400, invalid_request(detail, context.correlation_id, request_id=request_id))
            return None
        record = await self._stores.sessions.find(context.principal.tenant, named.decode("latin-1"))
        if record is None or not belongs(record, context) or record.transport != "http":
            gone = NotFound("session not found")
            await request.respond(404, refusal(gone, context.correlation_id, request_id=request_id))
            return None
        return record


def _as_wanted(request: McpRequest, work: Work) -> Work:
    """The work, on a stream from its start if the client prefers a stream to JSON."""
    return partial(_streamed, work) if request.prefers("text/event-stream", to="application/json") else work


async def _streamed(work: Work, sink: PostSink) -> bytes:
    await sink.defer()
    return await work(sink)


def not_a_message(message: dict[str, Any], context: RequestContext) -> bytes:
    """The refusal of a body that is not a valid JSON-RPC message, for example because of its id."""
    detail, named = "the body is not one JSON-RPC message", id_of(message)
    if "method" in message and "id" in message and (named is None or not is_id(named)):
        detail = f"{detail}: its id has to be a string or an integer, of at most {MAX_ID_BYTES} bytes"
    return invalid_request(detail, context.correlation_id, request_id=named)


def belongs(record: SessionRecord, context: RequestContext) -> bool:
    """True if the session belongs to the caller and was opened at this URL's profile."""
    return (record.subject, record.profile) == (context.principal.subject, context.registry.profile)


def _session_headers(record: SessionRecord) -> Headers:
    return ((SESSION_HEADER, record.id.encode()),)
