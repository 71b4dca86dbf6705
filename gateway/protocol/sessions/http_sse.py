"""HTTP+SSE of 2024-11-05: one stream for everything that the server says, and a URL of its own for the client's part.

The stream is a session that begins before its handshake and ends with its connection; the messages may reach any
replica, and whatever answers them is written into the session's log, from where the stream sends it. A session whose
replica is gone, and its stream with it, is refused with 404.
"""

from functools import partial
from typing import Any
from urllib.parse import parse_qs

import anyio
import structlog
from mcp_types import JSONRPCRequest
from starlette.types import Receive, Scope, Send

from gateway.domain.sessions import SessionRecord
from gateway.errors import Conflict, NotFound, RedisUnavailable
from gateway.protocol.http import jsonrpc, sse
from gateway.protocol.http.responses import answer, id_of, invalid_request, refusal
from gateway.protocol.request_context import Exchange
from gateway.protocol.sessions.dispatch import SessionCalls, read_message
from gateway.protocol.sessions.escalation import Overdue
from gateway.protocol.sessions.get_stream import Listening, Visit
from gateway.protocol.sessions.response_sink import OldOutlet
from gateway.protocol.sessions.running_requests import TAKEN, Turn, TurnId, Turns
from gateway.protocol.sessions.transport import belongs, not_a_message
from gateway.redis.sessions.records import new_session_id
from gateway.redis.sessions.stores import Backing

log = structlog.get_logger(__name__)

_PARTING_S = 2.0
_NOT_INITIALIZED = "the session is not initialized: send initialize, and wait for its answer, before other requests"


class Legacy:
    """Serves `/sse` and `/messages`."""

    def __init__(self, calls: SessionCalls, backing: Backing, listening: Listening, turns: Turns) -> None:
        self._calls = calls
        self._backing = backing
        self._listening = listening
        self._turns = turns

    async def get(self, scope: Scope, receive: Receive, send: Send, exchange: Exchange) -> None:
        """Open a session and its stream; when the one ends, so does the other.

        Raises:
            LimitExceeded: too many sessions or streams are open.
        """
        sessions, registry = self._backing.sessions, exchange.registry
        record = SessionRecord(
            id=new_session_id(),
            tenant=exchange.principal.tenant,
            subject=exchange.principal.subject,
            profile=registry.profile,
            protocol_version="2024-11-05",
            client={},
            revision=registry.revision,
            transport="sse",
            holder=self._backing.bus.replica,
        )
        await sessions.create(record, cap=registry.view.snapshot.policy.limits.sessions)
        path = f"{scope['path'].removesuffix('/sse')}/messages?session_id={record.id}"
        visit = Visit(record=record, exchange=exchange, receive=receive, send=send, greeting=sse.endpoint(path))
        try:
            await self._listening.stand_alone(visit)
        finally:
            with anyio.move_on_after(_PARTING_S, shield=True):
                await self._end(record)

    async def post(self, scope: Scope, send: Send, message: dict[str, Any], exchange: Exchange) -> None:
        """Take one message; what answers it goes on the stream."""
        record = await self._session(scope, exchange)
        if record is None:
            gone = NotFound("session not found")
            await answer(send, 404, refusal(gone, exchange.correlation_id, request_id=id_of(message)))
            return
        said = read_message(message)
        if said is None:
            await answer(send, 400, not_a_message(message, exchange))
            return
        if not isinstance(said, JSONRPCRequest):
            await self._calls.heed(said, record)
            await answer(send, 202)
            return
        turn = Turn(TurnId(record.tenant, record.id, jsonrpc.request_id(said.id)), exchange.correlation_id)
        try:
            with self._turns.holding(turn):
                await answer(send, 202)
                await self._answer(said, record, exchange, turn)
        except Conflict as error:
            await answer(send, 400, invalid_request(error.message, exchange.correlation_id))

    async def _answer(self, request: JSONRPCRequest, record: SessionRecord, exchange: Exchange, turn: Turn) -> None:
        outlet = OldOutlet(self._backing, self._calls.keys(record), turn.of.request, give_up=turn.give_up)
        overdue = Overdue(self._backing.bus.spawn, outlet.claim)
        try:
            text = await turn.run(partial(self._run, request, record, exchange, outlet), outlet)
            if outlet.is_refused:  # the id is another request's, so it does not stand in what is said of this one
                text = invalid_request(TAKEN, exchange.correlation_id)
            await outlet.finish(text)
        finally:
            overdue.cancel()
            outlet.leave()

    async def _run(
        self, request: JSONRPCRequest, record: SessionRecord, exchange: Exchange, outlet: OldOutlet
    ) -> bytes:
        if request.method != "initialize":
            if not record.is_open and request.method != "ping":
                return invalid_request(_NOT_INITIALIZED, exchange.correlation_id, request_id=request.id)
            return await self._calls.run(request, record, exchange, outlet)
        reply, begun = await self._calls.begin(request, record, exchange)
        if begun is not None:
            try:
                await self._backing.sessions.replace(begun)
            except RedisUnavailable as error:  # the POST was answered: it can only be said on the stream
                return refusal(error, exchange.correlation_id, request_id=request.id)
            log.info("session_opened", session=record.id[:8], protocol_version=begun.protocol_version)
        return reply

    async def _session(self, scope: Scope, exchange: Exchange) -> SessionRecord | None:
        named = parse_qs(scope["query_string"].decode("latin-1")).get("session_id", [])
        if len(named) != 1:
            return None
        record = await self._backing.sessions.find(exchange.principal.tenant, named[0])
        if record is None or not belongs(record, exchange) or record.transport != "sse":
            return None
        if record.holder and not await self._backing.lives.is_alive(record.holder):
            await self._end(record)  # no answer could be delivered: the client has to reconnect
            return None
        return record

    async def _end(self, record: SessionRecord) -> None:
        self._turns.end_session(record.tenant, record.id)
        try:
            await self._backing.sessions.remove(record.tenant, record.id)
        except RedisUnavailable:
            log.warning("session_not_ended", session=record.id[:8])  # it ends by itself
