"""Shared parts of tests of connectors: a live source, a client that answers, a recording listener, shared sessions."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from gateway.domain.fairness.task_supervisor import Spawn, TaskSupervisor
from gateway.domain.http.requests import Credential, NamedCredential
from gateway.domain.identifiers import LiveSourceId, SourceId, TenantId
from gateway.domain.live_sources import LiveKind, LiveSource
from gateway.domain.sessions import SessionOwner, UpstreamSession, UpstreamSessionKey
from gateway.domain.tenancy.principals import ToolCaller
from gateway.errors import CapabilityMissing, ClientSilent
from gateway.handlers.live.access import StoredSourceAccess
from gateway.upstream.client import UpstreamClient
from gateway.upstream.live.interfaces import LiveAttachment, LiveConnector
from gateway.upstream.live.mcp.caller_sessions import SessionsInUse, SharedSessions
from gateway.upstream.live.mcp.connector import McpConnector

TENANT = TenantId("ten_a")
ANN = SessionOwner("ann", "s")
_NOW = datetime(2026, 11, 23, tzinfo=UTC)


def source(
    settings: Mapping[str, object], *, kind: LiveKind = LiveKind.MCP, credential: str | None = None
) -> LiveSource:
    """A live source of a tenant."""
    return LiveSource(
        tenant=TENANT,
        id=LiveSourceId("liv_1"),
        name="remote",
        kind=kind,
        settings=settings,
        credential=credential,
        created_at=_NOW,
        updated_at=_NOW,
    )


@dataclass(slots=True)
class Client:
    """A client that answers questions by method, and records notifications and questions."""

    answers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    abilities: frozenset[str] = frozenset({"elicitation", "elicitation.url", "sampling", "roots"})
    notified: list[object] = field(default_factory=list[object])
    asked: list[tuple[str, Mapping[str, object]]] = field(default_factory=list[tuple[str, Mapping[str, object]]])
    received: asyncio.Event = field(default_factory=asyncio.Event)
    owner: SessionOwner | None = ANN
    mirrored: object = None

    @property
    def caller(self) -> ToolCaller | None:
        return None

    def can(self, kind: str) -> bool:
        return kind in self.abilities

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        self.notified.append(("progress", progress, total, message))
        self.received.set()

    async def log(self, level: str, data: object, logger: str | None = None) -> None:
        self.notified.append(("log", level, data, logger))
        self.received.set()

    async def ask(self, method: str, params: Mapping[str, object]) -> Mapping[str, Any]:
        self.asked.append((method, params))
        kind = method.split("/", maxsplit=1)[0]
        if kind not in self.abilities:
            raise CapabilityMissing(f"the client did not declare {kind}", capability=kind)
        if method not in self.answers:
            raise ClientSilent("the client did not answer in time")
        return self.answers[method]


@dataclass(slots=True)
class Listener:
    """Remembers what an attachment reports."""

    updates: list[str] = field(default_factory=list[str])
    notices: list[str] = field(default_factory=list[str])
    has_changed: asyncio.Event = field(default_factory=asyncio.Event)
    has_updated: asyncio.Event = field(default_factory=asyncio.Event)

    def changed(self) -> None:
        self.has_changed.set()

    def updated(self, uri: str) -> None:
        self.updates.append(uri)
        self.has_updated.set()

    def noticed(self, notice: str) -> None:
        self.notices.append(notice)


@dataclass(slots=True)
class Secrets:
    """The stored credentials of the tenant."""

    stored: dict[str, NamedCredential] = field(default_factory=dict[str, NamedCredential])

    async def credentials(self, tenant: TenantId, source: SourceId) -> Mapping[str, Credential]:
        del tenant, source
        return {}

    async def named(self, tenant: TenantId, name: str) -> NamedCredential | None:
        return self.stored.get(name) if tenant == TENANT else None


class MemoryRecords:
    """The sessions of callers as Redis shares them, for connectors of one test process."""

    def __init__(self) -> None:
        self.stored: dict[UpstreamSessionKey, UpstreamSession] = {}
        self.ended: list[UpstreamSession] = []
        self.marks: set[str] = set()
        self._lock = asyncio.Lock()

    async def touch(self, key: UpstreamSessionKey) -> UpstreamSession | None:
        return self.stored.get(key)

    @asynccontextmanager
    async def opening(self, key: UpstreamSessionKey) -> AsyncGenerator[None]:
        del key
        async with self._lock:
            yield

    async def store(self, key: UpstreamSessionKey, session: UpstreamSession) -> None:
        self.stored[key] = session

    async def drop(self, key: UpstreamSessionKey, session: UpstreamSession) -> None:
        if self.stored.get(key) == session:
            del self.stored[key]

    async def take_ended(self, tenant: TenantId, source: LiveSourceId, version: int) -> Sequence[UpstreamSession]:
        del tenant, source, version
        taken, self.ended = self.ended, []
        return taken

    async def take_all(self, tenant: TenantId, source: LiveSourceId, version: int) -> Sequence[UpstreamSession]:
        del tenant, source, version
        taken, self.stored = list(self.stored.values()), {}
        return taken

    async def mark(self, key: UpstreamSessionKey, request: str) -> None:
        del key
        self.marks.add(request)

    async def unmark(self, key: UpstreamSessionKey, request: str) -> None:
        del key
        self.marks.discard(request)


PassOn = Callable[[UpstreamSessionKey, bytes], Awaitable[bool]]


async def unanswered(key: UpstreamSessionKey, message: bytes) -> bool:
    """Find no other replica that runs a request."""
    del key, message
    return False


def shared_sessions(
    records: MemoryRecords | None = None, in_use: SessionsInUse | None = None, pass_on: PassOn = unanswered
) -> SharedSessions:
    """The shared sessions of connectors that have these records."""
    return SharedSessions(records or MemoryRecords(), in_use or SessionsInUse(), pass_on, b"a key of all replicas")


def mcp_connector(
    upstream: UpstreamClient, access: StoredSourceAccess | None = None, sessions: SharedSessions | None = None
) -> Callable[[Spawn], McpConnector]:
    """Build connectors of MCP servers."""
    return lambda spawn: McpConnector(
        upstream, access or StoredSourceAccess(Secrets()), spawn, sessions or shared_sessions()
    )


@asynccontextmanager
async def attached_by(
    build: Callable[[Spawn], LiveConnector], declared: LiveSource, listener: Listener | None = None
) -> AsyncGenerator[LiveAttachment]:
    """Attach with a connector and a task supervisor of its own while the block runs."""
    async with TaskSupervisor() as tasks, build(tasks.spawn).attach(declared, listener or Listener()) as attachment:
        yield attachment
