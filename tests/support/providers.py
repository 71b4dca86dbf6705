"""The endpoint of providers on a real uvicorn over a real socket, with keys and live sources in memory, and a client
that speaks the protocol by hand."""

import asyncio
import json
import socket
from collections import Counter
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, cast

import anyio
import uvicorn
from websockets.asyncio.client import ClientConnection, connect

import gateway.provide
from gateway.app.python.provider.link import ProviderLink
from gateway.app.server.http_protocol import HardenedHttpProtocol
from gateway.domain.identifiers import KeyId, TenantId
from gateway.domain.live_sources import DiscoveredPrimitive, LiveKind, LiveSource
from gateway.domain.sessions import SessionOwner
from gateway.domain.tenancy.keys import Key, KeySecret, Scope, digest_key, mint_key
from gateway.domain.tenancy.principals import Principal, ToolCaller
from gateway.errors import Conflict
from gateway.identity.authenticator import Authenticator
from gateway.identity.key_digests import KeyDigests
from gateway.upstream.live.interfaces import LiveAttachment, LiveListener
from gateway.web.edge import Edge
from gateway.web.providers.endpoint import ProvideEndpoint
from gateway.web.providers.open_providers import OpenProviders
from tests.support.ids import new_live_source_id
from tests.support.replicas import until
from tests.support.serving import Server

PATIENCE_S = 20.0
_PEPPER = b"pepper of the tests"
TOOL: dict[str, Any] = {
    "name": "save",
    "description": "Save it.",
    "inputSchema": {"type": "object", "properties": {}},
}


class KeysInMemory:
    """Keys of tenants, as the store has them."""

    def __init__(self) -> None:
        self.keys: dict[KeyId, tuple[Key, str]] = {}

    def make(self, slug: str, *scopes: Scope, subject: str | None = None) -> str:
        """The text of a new key."""
        minted = mint_key()
        key = Key(
            tenant=TenantId(f"ten_{slug}"),
            id=minted.id,
            name="test",
            scopes=frozenset(scopes or (Scope.PROVIDE,)),
            subject=subject or minted.id,
            profile=None,
            secret=KeySecret(digest=digest_key(minted.text, _PEPPER)),
            created_at=datetime.now(UTC),
            expires_at=None,
            revoked_at=None,
            version=1,
        )
        self.keys[minted.id] = key, slug
        return minted.text

    def revoke(self, text: str) -> KeyId:
        """Revoke a key."""
        found = next(key for key, _ in self.keys.values() if key.secret.digest == digest_key(text, _PEPPER))
        self.keys[found.id] = replace(found, revoked_at=datetime.now(UTC)), self.keys[found.id][1]
        return found.id

    async def find(self, wanted: Collection[KeyId], *, hurried: bool = False) -> Mapping[KeyId, tuple[Key, str]]:
        """Those of the wanted keys that exist."""
        return {key: self.keys[key] for key in wanted if key in self.keys}


class SourcesInMemory:
    """Live sources of kind `agent` without a catalog: it offers what is attached to the test."""

    def __init__(self) -> None:
        self.owners: dict[tuple[TenantId, str], str] = {}
        self.attached: dict[tuple[TenantId, str], LiveAttachment] = {}
        self.updates: list[str] = []
        self.changes = Counter[str]()
        self._moved = asyncio.Event()

    async def claim(self, principal: Principal, name: str) -> LiveSource:
        """The source; it belongs to the first subject."""
        if self.owners.setdefault((principal.tenant, name), principal.subject) != principal.subject:
            raise Conflict("the source belongs to another subject")
        now = datetime.now(UTC)
        return LiveSource(
            tenant=principal.tenant,
            id=new_live_source_id(),
            name=name,
            kind=LiveKind.AGENT,
            created_at=now,
            updated_at=now,
        )

    async def check(self, tenant: TenantId, primitives: Sequence[DiscoveredPrimitive]) -> Sequence[str | None]:
        """A tool needs a description."""
        del tenant
        return [
            None if one.family != "tool" or "description" in one.definition else "description is missing"
            for one in primitives
        ]

    async def renew(self, source: LiveSource) -> LiveSource:
        """The source."""
        return source

    @asynccontextmanager
    async def offer(self, source: LiveSource, attachment: LiveAttachment) -> AsyncGenerator[LiveListener]:
        """Keep the attachment where the test finds it."""
        key = source.tenant, source.name
        self.attached[key] = attachment
        self._signal()
        try:
            yield _Reports(self, source.name)
        finally:
            if self.attached[key] is attachment:
                del self.attached[key]
            self._signal()

    def note(self, name: str, uri: str | None = None) -> None:
        """Count a change of the list, or note an update."""
        if uri is None:
            self.changes[name] += 1
        else:
            self.updates.append(uri)
        self._signal()

    def find(self, name: str, slug: str = "acme") -> LiveAttachment:
        """The attachment of a source."""
        return self.attached[TenantId(f"ten_{slug}"), name]

    async def wait_for_update(self, uri: str) -> None:
        """Wait until this update was reported."""
        with anyio.fail_after(PATIENCE_S):
            while uri not in self.updates:
                await self._moved.wait()

    async def wait_until_gone(self, name: str, slug: str = "acme") -> None:
        """Wait until the source has no attachment."""
        with anyio.fail_after(PATIENCE_S):
            while (TenantId(f"ten_{slug}"), name) in self.attached:
                await self._moved.wait()

    async def wait_for_change(self, name: str, count: int = 1) -> None:
        """Wait until the source has changed so often."""
        with anyio.fail_after(PATIENCE_S):
            while self.changes[name] < count:
                await self._moved.wait()

    def _signal(self) -> None:
        self._moved.set()
        self._moved = asyncio.Event()


@dataclass(frozen=True)
class _Reports:
    """The reports of one attachment."""

    sources: SourcesInMemory
    name: str

    def changed(self) -> None:
        self.sources.note(self.name)

    def updated(self, uri: str) -> None:
        self.sources.note(self.name, uri)

    def noticed(self, notice: str) -> None:
        raise AssertionError(notice)


@dataclass
class RecordingClient:
    """The client of a call: keeps what it receives, and answers questions."""

    answer: Mapping[str, Any] | Exception = field(default_factory=lambda: {"action": "accept", "content": {}})
    received: list[tuple[object, ...]] = field(default_factory=list[tuple[object, ...]])

    @property
    def caller(self) -> ToolCaller | None:
        return None

    @property
    def owner(self) -> SessionOwner | None:
        return SessionOwner("ann", "s")

    @property
    def mirrored(self) -> object:
        return None

    def can(self, kind: str) -> bool:
        """It can do everything."""
        return True

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Keep it."""
        self.received.append(("progress", progress, total, message))

    async def log(self, level: str, data: object, logger: str | None = None) -> None:
        """Keep it."""
        self.received.append(("log", level, data, logger))

    async def ask(self, method: str, params: Mapping[str, object]) -> Mapping[str, Any]:
        """Answer it."""
        self.received.append(("ask", method, params))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Provider:
    """A provider written by hand: sends and receives single messages."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self._sent = 0

    async def send(self, **message: Any) -> None:
        """Send one message."""
        await self.connection.send(json.dumps({"jsonrpc": "2.0", **message}))

    async def receive(self) -> dict[str, Any]:
        """The next message."""
        with anyio.fail_after(PATIENCE_S):
            return cast("dict[str, Any]", json.loads(await self.connection.recv()))

    async def request(self, method: str, **params: Any) -> dict[str, Any]:
        """The response to a request; messages before it are lost."""
        self._sent += 1
        await self.send(id=self._sent, method=method, params=params)
        while (answer := await self.receive()).get("id") != self._sent or "method" in answer:
            pass
        return answer

    async def hello(self, source: str = "laptop", **more: Any) -> dict[str, Any]:
        """The result of a hello."""
        answer = await self.request("provider/hello", version=1, source=source, **more)
        return cast("dict[str, Any]", answer.get("result") or answer)

    async def closed(self) -> tuple[int | None, str | None]:
        """Wait for the end of the connection; its close code and reason."""
        with anyio.fail_after(PATIENCE_S):
            await self.connection.wait_closed()
        return self.connection.close_code, self.connection.close_reason


def loop_of(provider: gateway.provide.Provider) -> asyncio.Task[None]:
    """The task of a provider in its `async with` block."""
    task: asyncio.Task[None] = vars(provider)["_running"]
    return task


def socket_of(provider: gateway.provide.Provider) -> ClientConnection | None:
    """The present connection of a provider."""
    socket: ClientConnection | None = vars(link_of(provider))["_socket"]
    return socket


def link_of(provider: gateway.provide.Provider) -> ProviderLink:
    """The link of a provider."""
    link: ProviderLink = vars(provider)["_link"]
    return link


async def wait_for_calls(provider: gateway.provide.Provider, count: int = 1) -> None:
    """Wait until so many calls run at the provider."""
    await until(lambda: len(vars(link_of(provider))["_calls"]) >= count, seconds=PATIENCE_S, pause=0.001)


@dataclass(frozen=True)
class ProviderStand:
    """The endpoint at `url`, its parts, and its keys and sources."""

    url: str
    keys: KeysInMemory
    sources: SourcesInMemory
    providers: OpenProviders
    credentials: Authenticator

    @asynccontextmanager
    async def connect(self, key: str, slug: str = "acme") -> AsyncGenerator[Provider]:
        """A connection that has not sent a hello."""
        url, headers = f"{self.url}/t/{slug}/provide", {"authorization": f"Bearer {key}"}
        async with connect(
            url, additional_headers=headers, compression=None, ping_interval=None, max_size=None, proxy=None
        ) as connection:
            yield Provider(connection)

    @asynccontextmanager
    async def attached(
        self, source: str = "laptop", *tools: Mapping[str, Any], key: str | None = None, slug: str = "acme"
    ) -> AsyncGenerator[tuple[Provider, LiveAttachment]]:
        """A provider that has registered these tools, or `save`, and its attachment."""
        async with self.connect(key or self.keys.make(slug), slug) as provider:
            await provider.hello(source)
            await provider.request("provider/register", tools=list(tools) or [TOOL])
            yield provider, self.sources.find(source, slug)


@asynccontextmanager
async def running_providers(**options: Any) -> AsyncGenerator[ProviderStand]:
    """A `Stand` for as long as the block runs; options are the endpoint's."""
    keys, sources = KeysInMemory(), SourcesInMemory()
    credentials = Authenticator(
        keys, digests=KeyDigests({"k": _PEPPER}), operator_key="operator-key-of-the-tests-0123456789"
    )
    providers = OpenProviders(credentials)
    endpoint = ProvideEndpoint(providers, sources, **options)
    edge = Edge(_not_found, hosts=["127.0.0.1"], sockets=endpoint)
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(edge, http=HardenedHttpProtocol, lifespan="off", access_log=False, log_config=None)
    server = Server(config)
    async with providers, anyio.create_task_group() as group:
        group.start_soon(server.serve, [listener])
        try:
            with anyio.fail_after(PATIENCE_S):
                await server.answering.wait()
            yield ProviderStand(f"ws://127.0.0.1:{listener.getsockname()[1]}", keys, sources, providers, credentials)
        finally:
            providers.drain()
            server.leave()


async def _not_found(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 404, "headers": []})
    await send({"type": "http.response.body", "body": b""})
