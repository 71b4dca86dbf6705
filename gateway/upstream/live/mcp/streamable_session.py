"""Sessions over streamable HTTP (MCP 2025-11-25, Transports): opened here, or continued from another replica.

Requests of a session may run concurrently: each is a POST whose response contains its messages. Messages outside of
such a response arrive on the GET stream; `deliver` passes them to a running request.
"""

import asyncio
import itertools
import re
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import ExitStack, asynccontextmanager, suppress
from functools import partial
from typing import Any

from gateway.domain.fairness.task_supervisor import Spawn
from gateway.domain.refusals import LiveSourceFailed
from gateway.domain.sessions import UpstreamSession
from gateway.upstream.live.interfaces import LiveClient
from gateway.upstream.live.mcp.conversation import QUESTIONS, Conversation, Report
from gateway.upstream.live.mcp.endpoint import AuthorizedEndpoint, HttpRefusal, SourceEndpoint
from gateway.upstream.live.mcp.messages import Message, RemoteRefusal, write_message
from gateway.upstream.live.mcp.response_messages import ResponseMessages
from gateway.upstream.live.mcp.session import (
    NOT_OFFERED,
    ServerFacts,
    SessionExpired,
    StreamNotOffered,
    begin,
    initialization,
    read_facts,
    refusal_of,
    with_token,
)
from gateway.upstream.live.mcp.time_limit import TimeLimit
from gateway.upstream.response_stream import ResponseStream
from gateway.upstream.serialize.header_checks import is_header_value

_SESSION_ID = re.compile(r"[!-~]{1,1024}")
_NOT_FOUND = 404
_BAD_REQUEST = 400
_ID_BLOCK_BITS, _ID_BITS = 20, 51
"""Request ids have to be unique in a session, and exact in JavaScript: each replica that continues a session takes a
random block of them.
"""
_NO_REQUEST = "no request of a client is running that could answer"

_NO_SESSION = re.compile(r"session|initializ", re.IGNORECASE)

Take = Callable[[Message], Awaitable[None]]
"""Handles a message that the server sent on the GET stream and that is meant for the client."""


class StreamableSession:
    """One session over streamable HTTP.

    Without a session id, the server is stateless, and each request uses the currently stored credential.
    """

    def __init__(
        self,
        source: SourceEndpoint,
        endpoint: AuthorizedEndpoint,
        report: Report,
        spawn: Spawn,
        *,
        capabilities: frozenset[str] = frozenset(),
    ) -> None:
        self._report = report
        self._spawn = spawn
        self.facts = ServerFacts(revision="")
        self._source = source
        self._endpoint = endpoint
        self.identity = endpoint.identity
        self.capabilities = capabilities
        self._headers: tuple[tuple[str, str], ...] = ()
        self._ids = itertools.count(1)
        self._cancelling = asyncio.Lock()
        self._is_known = self._is_shared = self._has_ended = False
        self._running: dict[int, Conversation] = {}
        self.record: UpstreamSession | None = None
        """The session for other replicas; None without a session id."""

    @property
    def is_shared(self) -> bool:
        """True if the server assigned no session id."""
        return self._is_shared

    @property
    def has_ended(self) -> bool:
        """True after status 404 (400 from older servers) in a session with an id that served requests before."""
        return self._has_ended

    @property
    def running(self) -> int:
        """Number of requests of clients that run in the session at this replica."""
        return len(self._running)

    async def open(self, capabilities: frozenset[str], limit: TimeLimit) -> None:
        """Initialize the session.

        Raises:
            LiveSourceFailed, UpstreamError: the server does not open a session.
        """
        number, params = next(self._ids), initialization(capabilities)
        stream = await self._endpoint.open("POST", (), write_message(id=number, method="initialize", params=params))
        with ResponseMessages(self._endpoint, stream) as messages:
            reply = partial(self._reply, self._endpoint)
            result = await Conversation(messages.read, reply, number, None, limit=limit, report=self._report).run()
        self.facts = read_facts(result)
        identifier = stream.field(b"mcp-session-id")
        if identifier is None:
            self._is_shared = True
            self._headers = (("MCP-Protocol-Version", self.facts.revision),)
        elif not _SESSION_ID.fullmatch(identifier):  # guard: live-session-id
            raise LiveSourceFailed("the server's session id is not a valid header value")
        else:
            self._use(UpstreamSession(id=identifier, revision=self.facts.revision))
        await begin(self, limit)

    def adopt(self, record: UpstreamSession) -> None:
        """Continue a session that another replica has opened."""
        self.facts = ServerFacts(revision=record.revision)
        self._ids = itertools.count((1 + secrets.randbelow((1 << _ID_BITS - _ID_BLOCK_BITS) - 1)) << _ID_BLOCK_BITS)
        self._is_known = True
        self._use(record)

    async def request(
        self, method: str, params: Mapping[str, object], client: LiveClient | None, limit: TimeLimit
    ) -> dict[str, Any]:
        """Run one request as a POST, whose response contains all of its messages."""
        number = next(self._ids)
        body = write_message(id=number, method=method, params=with_token(params, number, client))
        endpoint = await self._authorized(client)
        is_answered = False
        response: ResponseMessages | None = None
        opened = ExitStack()

        async def read() -> Message | None:
            nonlocal response
            if response is None:  # a server may ask on the GET stream before it begins its response
                stream = await endpoint.open("POST", self._headers, body)
                messages = ResponseMessages(endpoint, stream, partial(resume, endpoint, self._headers))
                response = opened.enter_context(messages)
            return await response.read()

        conversation = Conversation(
            read, partial(self._reply, endpoint), number, client, limit=limit, report=self._report
        )
        if client is not None and self.capabilities:
            conversation.accept_outside()
            self._running[number] = conversation
        try:
            with opened:
                result = await conversation.run()
            is_answered = True
        except (HttpRefusal, RemoteRefusal) as refusal:
            is_answered = True
            self._check_expired(refusal)
            raise
        finally:
            self._running.pop(number, None)
            if not is_answered:
                self._spawn(self._cancel, endpoint, number)
        self._is_known = True
        return result

    async def notify(self, method: str) -> None:
        """Send a notification."""
        await self._post(await self._authorized(), write_message(method=method))

    async def deliver(self, message: Message, *, is_one_client: bool) -> bool:
        """Pass a message to a running request; False if none runs here.

        Several requests may run: if one client has sent them all, the newest gets the message, and the clocks of the
        others stop until the client has responded. Otherwise a server request is refused.
        """
        others = list(self._running.values())
        if not others:
            return False
        chosen = others.pop()
        if others and not is_one_client:  # guard: live-question-of-one-caller
            if "id" in message:
                await self._reply(await self._authorized(), refusal_of(message, "several requests are running"))
            return True
        await chosen.take(message)
        for other in others:
            other.wait_for(chosen.asking)
        return True

    async def follow(self, opened: Callable[[], None], take: Take | None = None) -> None:
        """Follow the GET stream: report changes, and let `take` handle what is meant for the client. Without `take`,
        server requests are refused.

        Raises:
            StreamNotOffered: the server has no such stream.
        """
        async with self._standalone_stream(opened) as messages:
            while (message := await messages.read_valid(self._report.skipped)) is not None:
                method = message.get("method")
                if "id" not in message and method != "notifications/message":
                    self._report(message)
                elif take is not None and (method in QUESTIONS or "id" not in message):
                    await take(message)
                elif method is not None:
                    await self.refuse(message)

    async def refuse(self, message: Message) -> None:
        """Refuse a server request that no client can answer."""
        if "id" in message:
            await self._reply(await self._authorized(), refusal_of(message, _NO_REQUEST))

    @asynccontextmanager
    async def _standalone_stream(self, opened: Callable[[], None]) -> AsyncGenerator[ResponseMessages]:
        endpoint = await self._authorized()
        try:
            stream = await endpoint.open("GET", self._headers)
        except (HttpRefusal, RemoteRefusal) as refusal:
            if refusal.status in NOT_OFFERED and (self.capabilities or refusal.status != _NOT_FOUND):
                raise StreamNotOffered("the server offers no stream of changes") from None
            self._check_expired(refusal)
            if refusal.status in NOT_OFFERED:
                raise StreamNotOffered("the server offers no stream of changes") from None
            raise
        with ResponseMessages(endpoint, stream, partial(resume, endpoint, self._headers)) as messages:
            opened()
            yield messages

    async def close(self) -> None:
        """Send `notifications/cancelled` for abandoned requests, then DELETE."""
        if self._has_ended or self._is_shared:
            return
        async with self._cancelling:
            with suppress(HttpRefusal), await self._endpoint.open("DELETE", self._headers):
                pass  # the server does not support DELETE, and lets sessions expire

    def _use(self, record: UpstreamSession) -> None:
        self.record = record
        self._headers = (("MCP-Protocol-Version", record.revision), ("Mcp-Session-Id", record.id))

    async def _authorized(self, client: LiveClient | None = None) -> AuthorizedEndpoint:
        """Return the endpoint with the credential of the next request.

        A session keeps its credential; a per-caller credential is loaded again for each request.
        """
        is_renewed = client is not None and self._source.names_callers  # guard: live-caller-renewed
        if is_renewed and not self._is_shared:
            self._endpoint = await self._source.authorize(client)
        # guard: live-shared-credential
        return await self._source.authorize(client) if self._is_shared else self._endpoint

    async def _cancel(self, endpoint: AuthorizedEndpoint, number: int) -> None:
        async with self._cancelling:
            message = write_message(method="notifications/cancelled", params={"requestId": number})
            await self._post(endpoint, message)

    def _check_expired(self, refusal: HttpRefusal | RemoteRefusal) -> None:
        """Raise SessionExpired if a refusal shows that the server has ended the session."""
        words = refusal.words if isinstance(refusal, RemoteRefusal) else "session"
        is_gone = refusal.status == _NOT_FOUND or (refusal.status == _BAD_REQUEST and _NO_SESSION.search(words))
        self._has_ended |= bool(is_gone) and self._is_known and not self._is_shared
        if self._has_ended:
            raise SessionExpired("the server has ended the session")

    async def _reply(self, endpoint: AuthorizedEndpoint, members: Mapping[str, object]) -> None:
        await self._post(endpoint, write_message(**members))

    async def _post(self, endpoint: AuthorizedEndpoint, body: bytes) -> None:
        with await endpoint.open("POST", self._headers, body):
            pass


async def resume(endpoint: AuthorizedEndpoint, headers: tuple[tuple[str, str], ...], last_id: str) -> ResponseStream:
    """Resume an event stream after the event `last_id`.

    Raises:
        LiveSourceFailed: the event id cannot be sent, or the stream no longer exists.
    """
    if not is_header_value(last_id):
        raise LiveSourceFailed("the server's event id is not a valid header value")
    return await endpoint.open("GET", (*headers, ("Last-Event-ID", last_id)))
