"""Sessions with an `initialize` handshake: the interface for all transports, and sessions over streamable HTTP.

A session declares the capabilities of its client, so sessions are opened per set of capabilities.
"""

import asyncio
import itertools
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from gateway.domain.refusals import LiveSourceFailed
from gateway.domain.task_supervisor import Spawn
from gateway.upstream.live.interfaces import LiveClient
from gateway.upstream.live.mcp.conversation import Conversation, Report
from gateway.upstream.live.mcp.endpoint import AuthorizedEndpoint, HttpRefusal, SourceEndpoint
from gateway.upstream.live.mcp.messages import RemoteRefusal, is_object, quote, show, write_message
from gateway.upstream.live.mcp.response_messages import ResponseMessages
from gateway.upstream.live.mcp.time_limit import TimeLimit
from gateway.upstream.response_stream import ResponseStream
from gateway.upstream.serialize.header_checks import is_header_value

REVISIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
CLIENT_INFO: Mapping[str, str] = {"name": "mcp-gateway", "version": "1"}
CAPABILITIES = ("elicitation", "elicitation.url", "sampling", "roots")
"""Client capabilities, in the notation of `LiveClient.can`."""
ALL_CAPABILITIES = frozenset(CAPABILITIES)
"""Capabilities in sessions for the gateway's own requests, because some servers list tools only to capable clients."""
LOG_LEVEL = "info"
_SESSION_ID = re.compile(r"[!-~]{1,1024}")
_HTTP_NOT_FOUND = frozenset({400, 404})
NOT_OFFERED = frozenset({400, 404, 405, 406, 501})


class SessionExpired(LiveSourceFailed):
    """The server has ended the session, and did not run the request."""


class StreamNotOffered(LiveSourceFailed):
    """The server offers no stream for unsolicited messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFacts:
    """The declarations of a server: its revision, capabilities and title."""

    revision: str
    capabilities: Mapping[str, Any] = field(default_factory=dict[str, Any])
    title: str = ""

    def has(self, family: str, member: str | None = None) -> bool:
        """True if the server declared the capability; with `member`, this member of it."""
        declared = self.capabilities.get(family)
        return is_object(declared) and (member is None or declared.get(member) is True)


class HandshakeSession(Protocol):
    """One session with an `initialize` handshake."""

    facts: ServerFacts
    identity: bytes
    """Digest of the credential with which the session was opened."""

    @property
    def is_shared(self) -> bool:
        """True if requests of several clients may run in the session concurrently."""
        ...

    @property
    def is_clean(self) -> bool:
        """True if another client may use the session: no message of an earlier request can still arrive."""
        ...

    async def request(
        self, method: str, params: Mapping[str, object], client: LiveClient | None, limit: TimeLimit
    ) -> dict[str, Any]:
        """Run one request; see `Conversation.run`."""
        ...

    async def notify(self, method: str) -> None:
        """Send a notification without parameters."""
        ...

    async def follow(self, opened: Callable[[], None]) -> None:
        """Report unsolicited messages until their stream ends.

        Raises:
            StreamNotOffered: the server has no such stream.
        """
        ...

    @property
    def has_ended(self) -> bool:
        """True if the session is unusable: the server ended it, or its connection closed."""
        ...

    async def close(self) -> None:
        """Cancel abandoned requests, and end the session."""
        ...


class StreamableSession:
    """One session over streamable HTTP (MCP 2025-11-25, Transports).

    Without a session id, the server is stateless, and each request uses the currently stored credential.
    """

    def __init__(self, source: SourceEndpoint, endpoint: AuthorizedEndpoint, report: Report, spawn: Spawn) -> None:
        self._report = report
        self._spawn = spawn
        self.facts = ServerFacts(revision="")
        self._source = source
        self._endpoint = endpoint
        self.identity = endpoint.identity
        self._headers: tuple[tuple[str, str], ...] = ()
        self._ids = itertools.count(1)
        self._cancelling = asyncio.Lock()
        self._completed = 0
        self._is_shared = self._has_ended = self._has_given_up = False

    @property
    def is_shared(self) -> bool:
        """True if the server assigned no session id."""
        return self._is_shared

    @property
    def is_clean(self) -> bool:
        """True if every request received its response."""
        return not self._has_given_up and not self._has_ended

    @property
    def has_ended(self) -> bool:
        """True after status 404 (400 from older servers) in a session with an id that served requests before."""
        return self._has_ended

    async def open(self, capabilities: frozenset[str], limit: TimeLimit) -> None:
        """Initialize the session.

        Raises:
            LiveSourceFailed, UpstreamError: the server does not open a session.
        """
        number, params = next(self._ids), initialization(capabilities)
        stream = await self._endpoint.open("POST", (), write_message(id=number, method="initialize", params=params))
        with ResponseMessages(self._endpoint, stream) as messages:
            reply = partial(self._reply, self._endpoint)
            result = await Conversation(messages.read, reply, number, None, limit, self._report).run()
        self.facts = read_facts(result)
        headers = [("MCP-Protocol-Version", self.facts.revision)]
        identifier = stream.field(b"mcp-session-id")
        if identifier is not None:
            if not _SESSION_ID.fullmatch(identifier):  # guard: live-session-id
                raise LiveSourceFailed("the server's session id is not a valid header value")
            headers.append(("Mcp-Session-Id", identifier))
        self._is_shared = identifier is None
        self._headers = tuple(headers)
        await begin(self, limit)

    async def request(
        self, method: str, params: Mapping[str, object], client: LiveClient | None, limit: TimeLimit
    ) -> dict[str, Any]:
        """Run one request as a POST, whose response contains all of its messages."""
        number = next(self._ids)
        body = write_message(id=number, method=method, params=with_token(params, number, client))
        endpoint = await self._authorized(client)
        is_answered = False
        try:
            stream = await endpoint.open("POST", self._headers, body)
            with ResponseMessages(endpoint, stream, partial(resume, endpoint, self._headers)) as messages:
                reply = partial(self._reply, endpoint)
                result = await Conversation(messages.read, reply, number, client, limit, self._report).run()
            is_answered = True
        except (HttpRefusal, RemoteRefusal) as refusal:
            is_answered = True
            self._check_expired(refusal.status)
            raise
        finally:
            if not is_answered:
                self._has_given_up = True
                self._spawn(self._cancel, endpoint, number)
        self._completed += 1
        return result

    async def notify(self, method: str) -> None:
        """Send a notification."""
        await self._post(await self._authorized(), write_message(method=method))

    async def follow(self, opened: Callable[[], None]) -> None:
        """Follow the GET stream."""
        endpoint = await self._authorized()
        try:
            stream = await endpoint.open("GET", self._headers)
        except (HttpRefusal, RemoteRefusal) as refusal:
            self._check_expired(refusal.status)
            if refusal.status in NOT_OFFERED:
                raise StreamNotOffered("the server offers no stream of changes") from None
            raise
        with ResponseMessages(endpoint, stream, partial(resume, endpoint, self._headers)) as messages:
            opened()
            while (message := await messages.read()) is not None:
                self._report(message)

    async def close(self) -> None:
        """Send `notifications/cancelled` for abandoned requests, then DELETE."""
        if self._has_ended or self._is_shared:
            return
        async with self._cancelling:
            with suppress(HttpRefusal), await self._endpoint.open("DELETE", self._headers):
                pass  # the server does not support DELETE, and lets sessions expire

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

    def _check_expired(self, status: int) -> None:
        """Raise SessionExpired if a refusal of this status shows that the server has ended the session."""
        self._has_ended |= status in _HTTP_NOT_FOUND and self._completed > 0 and not self._is_shared
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


async def begin(session: HandshakeSession, limit: TimeLimit) -> None:
    """Complete the initialization of a session; set the log level if the server supports logging."""
    await session.notify("notifications/initialized")
    if session.facts.has("logging"):
        with suppress(RemoteRefusal):  # the server then uses its default level
            await session.request("logging/setLevel", {"level": LOG_LEVEL}, None, limit)


def initialization(capabilities: frozenset[str]) -> dict[str, object]:
    """Return the parameters of `initialize`."""
    return {"protocolVersion": REVISIONS[0], "capabilities": declared(capabilities), "clientInfo": CLIENT_INFO}


def declared(capabilities: frozenset[str]) -> dict[str, object]:
    """Return the client capabilities in the protocol's form."""
    named: dict[str, object] = {name: {} for name in sorted(capabilities) if "." not in name}
    if "elicitation.url" in capabilities:
        named["elicitation"] = {"url": {}} | ({"form": {}} if "elicitation" in capabilities else {})
    return named


def read_facts(result: Mapping[str, Any]) -> ServerFacts:
    """Return the declarations in the result of `initialize`.

    Raises:
        LiveSourceFailed: the gateway does not support the server's revision.
    """
    revision = result.get("protocolVersion")
    if revision not in REVISIONS:
        raise LiveSourceFailed(f"the server uses the unsupported protocol revision {quote(str(revision))}")
    capabilities = result.get("capabilities")
    title = title_of(result.get("serverInfo"))
    return ServerFacts(revision=revision, capabilities=capabilities if is_object(capabilities) else {}, title=title)


def title_of(server: object) -> str:
    """Return a display title with name and version of the server."""
    if not is_object(server):
        return ""
    parts = (server.get("title") or server.get("name"), server.get("version"))
    return show(" ".join(part for part in parts if isinstance(part, str)), 128)


def with_token(params: Mapping[str, object], number: int, client: LiveClient | None) -> dict[str, object]:
    """Return the parameters with a progress token of the gateway, without the client's `_meta`."""
    plain: dict[str, object] = {name: value for name, value in params.items() if name != "_meta"}
    return plain if client is None else {**plain, "_meta": {"progressToken": number}}
