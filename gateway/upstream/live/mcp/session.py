"""Sessions with an `initialize` handshake: the interface for all transports, and the handshake.

A session declares the capabilities of its client, so sessions are opened per set of capabilities.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from gateway.domain.live_sources import PAGE_TYPE, PAGES_EXTENSION
from gateway.domain.refusals import LiveSourceFailed
from gateway.upstream.live.interfaces import CAPABILITIES, REQUESTED, LiveClient
from gateway.upstream.live.mcp.messages import METHOD_UNKNOWN, Message, RemoteRefusal, is_object, quote, show
from gateway.upstream.live.mcp.time_limit import TimeLimit

REVISIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
CLIENT_INFO: Mapping[str, str] = {"name": "mcp-gateway", "version": "1"}
ALL_CAPABILITIES = frozenset(CAPABILITIES)
"""Capabilities in sessions for the gateway's own requests, because some servers list tools only to capable clients."""
LOG_LEVEL = "info"
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


def refusal_of(message: Message, reason: str) -> dict[str, object]:
    """Return the members of the response that refuses a server request; a ping gets its result."""
    if message.get("method") == "ping":
        return {"id": message["id"], "result": {}}
    return {"id": message["id"], "error": {"code": METHOD_UNKNOWN, "message": reason}}


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
    named: dict[str, object] = {name: {} for name in sorted(capabilities & REQUESTED) if "." not in name}
    if "ui" in capabilities:
        named["extensions"] = {PAGES_EXTENSION: {"mimeTypes": [PAGE_TYPE]}}
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
