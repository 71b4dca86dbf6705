"""The handshake era (2024-11-05 to 2025-11-25) over Streamable HTTP, without the SDK's transports.

A session is a record in Redis, so that any replica can serve any of its requests: each POST runs on a connection that
is made for it. Messages before the response, and a slow response, go to a stream that is stored
(`gateway.protocol.sessions.response_sink`); a client whose connection breaks resumes its streams at any replica.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

import structlog
from mcp_types import JSONRPCRequest
from starlette.types import Receive, Scope, Send

from gateway.domain.sessions import SessionRecord
from gateway.errors import Conflict, NotFound
from gateway.protocol.fast_path import Plain, recognises
from gateway.protocol.http import jsonrpc
from gateway.protocol.http.event_streams import Streams
from gateway.protocol.http.responses import Headers, accepts, answer, header, id_of, invalid_request, prefers, refusal
from gateway.protocol.http.sse import MEDIA_TYPE, read_place
from gateway.protocol.request_context import Exchange
from gateway.protocol.sessions.dispatch import MAX_ID_BYTES, SessionCalls, is_id, read_message
from gateway.protocol.sessions.escalation import Overdue
from gateway.protocol.sessions.get_stream import FIRST_PRIMED, Listening, Visit
from gateway.protocol.sessions.response_sink import Outlet, Posted, PostOutlet
from gateway.protocol.sessions.running_requests import TAKEN, Turn, TurnId, Turns
from gateway.redis.sessions.records import new_session_id
from gateway.redis.sessions.stores import Backing
from gateway.web.headers import fields_of

log = structlog.get_logger(__name__)

SESSION_HEADER: Final = b"mcp-session-id"
Work = Callable[[PostOutlet], Awaitable[bytes]]


class Handshake:
    """Serves the messages of sessions; keeps nothing of them between requests."""

    def __init__(
        self, calls: SessionCalls, backing: Backing, plain: Plain, listening: Listening, turns: Turns, streams: Streams
    ) -> None:
        self._calls = calls
        self._backing = backing
        self._plain = plain
        self._listening = listening
        self._turns = turns
        self._streams = streams

    async def post(self, scope: Scope, send: Send, message: dict[str, Any], exchange: Exchange) -> None:
        """Serve one message; a request is answered, everything else acknowledged."""
        if recognises(message):
            record = await self._session(scope, send, exchange, message["id"])
            if record is not None:
                work = partial(self._answer_plainly, message, record, exchange)
                await self._answer(scope, send, record, message["id"], exchange, _as_wanted(scope, work))
            return
        said = read_message(message)
        if said is None:
            await answer(send, 400, not_a_message(message, exchange))
            return
        if isinstance(said, JSONRPCRequest) and said.method == "initialize":
            await self._initialize(send, said, exchange)
            return
        record = await self._session(scope, send, exchange, id_of(message))
        if record is None:
            return
        if isinstance(said, JSONRPCRequest):
            work = partial(self._calls.run, said, record, exchange)
            await self._answer(scope, send, record, said.id, exchange, _as_wanted(scope, work))
        else:
            await self._calls.heed(said, record)
            await answer(send, 202, headers=_session_headers(record))

    async def get(self, scope: Scope, receive: Receive, send: Send, exchange: Exchange) -> None:
        """Open a stream, or come back to one.

        Raises:
            BadInput: the place that the client names is none.
            LimitExceeded: too many streams are open.
        """
        if not accepts(scope, MEDIA_TYPE):
            await answer(send, 406, invalid_request("Accept must include text/event-stream", exchange.correlation_id))
            return
        record = await self._session(scope, send, exchange)
        if record is None:
            return
        headers = _session_headers(record)
        visit = Visit(record=record, exchange=exchange, receive=receive, send=send, headers=headers)
        named = header(scope, b"last-event-id")
        place = read_place(named) if named else None
        if place is None or place.is_standalone:
            await self._listening.stand_alone(visit, place)
        else:
            await self._listening.come_back(visit, place)

    async def delete(self, scope: Scope, send: Send, exchange: Exchange) -> None:
        """End the session, and what is running in it."""
        record = await self._session(scope, send, exchange)
        if record is not None:
            await self._backing.sessions.remove(record.tenant, record.id)
            self._turns.end_session(record.tenant, record.id)
            log.info("session_ended", session=record.id[:8])
            await answer(send, 200)

    async def _initialize(self, send: Send, request: JSONRPCRequest, exchange: Exchange) -> None:
        registry = exchange.registry
        blank = SessionRecord(
            id=new_session_id(),
            tenant=exchange.principal.tenant,
            subject=exchange.principal.subject,
            profile=registry.profile,
            protocol_version="",
            client={},
        )
        reply, record = await self._calls.begin(request, blank, exchange)
        if record is None:
            await answer(send, 200, reply)
            return
        await self._backing.sessions.create(record, cap=registry.view.snapshot.policy.limits.sessions)
        log.info("session_opened", session=record.id[:8], protocol_version=record.protocol_version)
        await answer(send, 200, reply, headers=_session_headers(record))

    async def _answer(
        self, scope: Scope, send: Send, record: SessionRecord, named: str | int, exchange: Exchange, work: Work
    ) -> None:
        """Run a request and answer it: with JSON if it is soon over and says nothing before, else with a stream.

        It runs to its end also when the client goes away: in this era that does not cancel it.
        """
        posted = Posted(
            keys=self._calls.keys(record),
            request=jsonrpc.request_id(named),
            headers=_session_headers(record),
            is_resumable=record.protocol_version >= FIRST_PRIMED,
            may_stream=partial(accepts, scope, MEDIA_TYPE),
        )
        turn = Turn(TurnId(record.tenant, record.id, posted.request), exchange.correlation_id)
        stream = self._streams.unlisted(send, exchange.principal)
        outlet = PostOutlet(posted, stream, self._backing, give_up=turn.give_up)
        try:
            with self._turns.holding(turn):
                overdue = Overdue(self._backing.bus.spawn, outlet.claim, outlet.defer)
                try:
                    text = await turn.run(partial(work, outlet), outlet)
                finally:
                    overdue.cancel()
                if outlet.is_refused:
                    raise Conflict(TAKEN)
                await outlet.finish(text)
        except Conflict as error:
            refused = invalid_request(error.message, exchange.correlation_id)  # the id is the other request's
            await answer(send, 400, refused, headers=_session_headers(record))
        finally:
            outlet.leave()

    async def _answer_plainly(
        self, message: dict[str, Any], record: SessionRecord, exchange: Exchange, outlet: Outlet
    ) -> bytes:
        reply = await self._plain.handshake(message, exchange, record.protocol_version)
        if reply is not None:
            return reply.body
        request = JSONRPCRequest.model_validate(message, by_name=False)
        return await self._calls.run(request, record, exchange, outlet)

    async def _session(
        self, scope: Scope, send: Send, exchange: Exchange, request_id: str | int | None = None
    ) -> SessionRecord | None:
        """The session that the request names; None when it was answered here."""
        fields = fields_of(scope)
        named = fields.get(SESSION_HEADER)
        if named is None or SESSION_HEADER in fields.repeated:
            said = "the Mcp-Session-Id header has to be there once"
            await answer(send, 400, invalid_request(said, exchange.correlation_id, request_id=request_id))
            return None
        record = await self._backing.sessions.find(exchange.principal.tenant, named.decode("latin-1"))
        if record is None or not belongs(record, exchange) or record.transport != "http":
            gone = NotFound("session not found")
            await answer(send, 404, refusal(gone, exchange.correlation_id, request_id=request_id))
            return None
        return record


def _as_wanted(scope: Scope, work: Work) -> Work:
    """The work, on a stream from its start where the client would rather have one than JSON."""
    return partial(_streamed, work) if prefers(scope, "text/event-stream", to="application/json") else work


async def _streamed(work: Work, outlet: PostOutlet) -> bytes:
    await outlet.defer()
    return await work(outlet)


def not_a_message(message: dict[str, Any], exchange: Exchange) -> bytes:
    """The refusal of a body that is no JSON-RPC message, or one with an id that cannot be answered."""
    said, named = "the body is not one JSON-RPC message", id_of(message)
    if "method" in message and "id" in message and (named is None or not is_id(named)):
        said = f"{said}: its id has to be a string or an integer, of at most {MAX_ID_BYTES} bytes"
    return invalid_request(said, exchange.correlation_id, request_id=named)


def belongs(record: SessionRecord, exchange: Exchange) -> bool:
    """Whether the session is the caller's own, at the URL that it was opened at."""
    return (record.subject, record.profile) == (exchange.principal.subject, exchange.registry.profile)


def _session_headers(record: SessionRecord) -> Headers:
    return ((SESSION_HEADER, record.id.encode()),)
