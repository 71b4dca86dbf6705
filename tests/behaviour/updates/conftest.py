"""Two replicas, a tenant with resources, and a subscriber of each era at each of them."""

import itertools
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import quote

import anyio
import httpx2
import pytest

from gateway.catalog.updates.signatures import sign
from tests.support.events import Events, Wire, request
from tests.support.gateway import ACCEPT, META, MODERN, RunningGateway
from tests.support.primitives import add, template, text_resource
from tests.support.replicas import URL, Replica, Replicas, running_replicas
from tests.support.servers import TestDatabase, TestServers, execute
from tests.support.serving import NO_TLS
from tests.support.upstream import RecordingUpstream, recording_upstream

LISTEN = "subscriptions/listen"
Era = Literal["handshake", "2026-07-28"]
eras = pytest.mark.parametrize("era", ["handshake", "2026-07-28"])
PATIENCE_S = 30
"""An event is there within a second, what is found out by looking within eight; the machine may be busy."""

INTERVAL_S = 5
"""The shortest interval of a watch."""

NOTES = ("note://1", "note://2")
ROWS = template("row://{id}", {"kind": "template", "text": "row {{ id }}", "mimeType": "text/plain"})


@dataclass(frozen=True, slots=True)
class Notes:
    """A tenant with two resources and a template."""

    replicas: Replicas
    upstream: RecordingUpstream
    slug: str
    key: str
    database: TestDatabase

    @property
    def gateway(self) -> RunningGateway:
        """The first replica."""
        return self.replicas.a.gateway

    @asynccontextmanager
    async def notified(self, *uris: str, at: Replica | None = None) -> AsyncGenerator[AsyncIterator[str]]:
        """The URIs of the updates that a client receives, in 2026-07-28, at the second replica by default."""
        headers = {"accept": ACCEPT, "mcp-protocol-version": MODERN, "mcp-method": LISTEN}
        params = {"notifications": {"resourceSubscriptions": list(uris)}, "_meta": META}
        body = {"jsonrpc": "2.0", "id": 1, "method": LISTEN, "params": params}
        async with (
            self.replicas.http(self.key, to=at or self.replicas.b) as http,
            http.stream("POST", f"{URL}/t/{self.slug}/mcp", json=body, headers=headers) as answer,
        ):
            assert answer.status_code == 200, await answer.aread()
            messages = _messages(Events(answer))
            with anyio.fail_after(10):
                first = await anext(messages)
            assert first["params"]["notifications"].get("resourceSubscriptions") == list(uris)
            yield (each["params"]["uri"] async for each in messages if each.get("method", "").endswith("updated"))

    @asynccontextmanager
    async def following(self, era: Era, *uris: str, profile: str = "", key: str = "") -> AsyncGenerator["Following"]:
        """Everything that a client of either era receives at the second replica: subscribed resources, and all
        lists.
        """
        place = f"{self.slug}/{profile}" if profile else self.slug
        wire = Wire(self.replicas, place, key or self.key)
        opened = self._session(wire, uris) if era == "handshake" else self._listening(wire, uris)
        try:
            async with opened as reported:
                yield Following(reported, wire)
        finally:
            await wire.close()

    @asynccontextmanager
    async def _session(self, wire: Wire, uris: Sequence[str]) -> AsyncGenerator[AsyncIterator[dict[str, Any]]]:
        at = self.replicas.b
        await wire.initialize(at)
        for uri in uris:
            answer = await wire.post(at, request("resources/subscribe", {"uri": uri}))
            assert answer.json().get("result") == {}, answer.text
        async with wire.listening(at) as events:
            await events.next()  # its place: from now on everything is sent
            yield _messages(events)

    @asynccontextmanager
    async def _listening(self, wire: Wire, uris: Sequence[str]) -> AsyncGenerator[AsyncIterator[dict[str, Any]]]:
        lists = {"toolsListChanged": True, "resourcesListChanged": True, "promptsListChanged": True}
        params = {"notifications": {**lists, "resourceSubscriptions": list(uris)}, "_meta": META}
        wire.revision = MODERN
        named = {"mcp-protocol-version": MODERN, "mcp-method": LISTEN}
        async with wire.streaming(self.replicas.b, request(LISTEN, params), **named) as events:
            acknowledged = (await events.message())["params"]["notifications"]
            assert acknowledged.get("resourceSubscriptions", []) == list(uris)
            yield _messages(events)

    async def pass_time(self, seconds: int) -> None:
        """Let so much time have passed for the tenant's background work, but for what a replica has in hand."""
        waits = f"tenant_id = (select id from tenants where slug = '{self.slug}') and due_at < now() + interval '30 s'"
        earlier = f"update due_work set due_at = due_at - interval '{seconds} s' where {waits}"
        await execute(self.database.superuser_url, earlier)

    async def touch(self, *uris: str) -> None:
        """Report at the first replica that resources have changed."""
        for uri in uris:
            answer = await self.gateway.admin.post(f"/tenants/{self.slug}/resources/updated", json={"uri": uri})
            assert answer.status_code == 202, answer.text

    async def webhook(self, name: str = "cms") -> dict[str, Any]:
        """A new webhook with its secret."""
        return await add(self.gateway, self.slug, "webhooks", {"name": name})

    async def deliver(self, hook: dict[str, Any], body: object, **more: Any) -> httpx2.Response:
        """Send a delivery to the first replica, signed by default."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        delivery = more.get("delivery", f"msg_{time.monotonic_ns()}")
        at = str(more.get("at", int(time.time()) + more.get("skew", 0)))
        signature = more.get("signature") or sign(hook["secret"], delivery=delivery, at=at, body=raw)
        headers = {"webhook-id": delivery, "webhook-timestamp": at, "webhook-signature": signature}
        sent = {name.encode(): str(value).encode() for name, value in headers.items() if name != more.get("without")}
        to = more.get("to") or self.replicas.a
        async with httpx2.AsyncClient(verify=NO_TLS, base_url=to.gateway.url, trust_env=False, timeout=30) as http:
            return await http.post(more.get("path") or hook["status"]["path"], content=raw, headers=sent)

    async def watch(self, uri: str, *, interval_s: int = INTERVAL_S, **more: Any) -> dict[str, Any]:
        """A new watch of the upstream."""
        body = {"uri": uri, "url": f"{self.upstream.url}/{quote(uri, safe='')}", "interval_s": interval_s, **more}
        return await add(self.gateway, self.slug, "watches", body)


@dataclass(frozen=True, slots=True)
class Following:
    """A client that receives notifications of its subscriptions."""

    reported: AsyncIterator[dict[str, Any]]
    wire: Wire

    async def next(self) -> str:
        """The next notification, in short: the part after `notifications/`, and the resource's URI."""
        with anyio.fail_after(PATIENCE_S):
            message = await anext(self.reported)
        return " ".join([message["method"].removeprefix("notifications/"), *_uri_of(message)])

    async def rest(self) -> list[str]:
        """All notifications until its stream ends."""
        with anyio.fail_after(PATIENCE_S * 2):
            return [message["method"] async for message in self.reported if "method" in message]


def _uri_of(message: dict[str, Any]) -> list[str]:
    return [message["params"]["uri"]] if "uri" in message.get("params", {}) else []


async def received(updates: AsyncIterator[str], *, seconds: float = 10) -> str:
    """The next update."""
    with anyio.fail_after(seconds):
        return await anext(updates)


async def _messages(events: Events) -> AsyncIterator[dict[str, Any]]:
    while (event := await events.next_or_end()) is not None:
        if event.data:
            yield event.message


@pytest.fixture(scope="package")
async def updates_upstream() -> AsyncGenerator[RecordingUpstream]:
    """An upstream that writes down what it is asked."""
    async with recording_upstream() as started:
        yield started


@pytest.fixture(scope="package")
def updates_database(servers: TestServers) -> Iterator[TestDatabase]:
    """The database of both replicas."""
    with servers.database() as created:
        yield created


@pytest.fixture(scope="package")
async def shared_replicas(
    servers: TestServers,
    updates_database: TestDatabase,
    updates_upstream: RecordingUpstream,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncGenerator[Replicas]:
    """Two gateway processes over one database and one Redis."""
    redis_url, folder = servers.empty_redis(), tmp_path_factory.mktemp("updates")
    async with running_replicas(
        updates_database.app_url, redis_url, folder, egress_allow=[updates_upstream.authority]
    ) as started:
        yield started


@pytest.fixture(scope="package")
def slugs() -> Iterator[str]:
    """Names that no other test has taken."""
    return (f"notes-{number}" for number in itertools.count(1))


@pytest.fixture
async def notes(
    shared_replicas: Replicas,
    updates_upstream: RecordingUpstream,
    updates_database: TestDatabase,
    slugs: Iterator[str],
) -> AsyncGenerator[Notes]:
    """A tenant of this test alone, on two replicas that are up and well."""
    await shared_replicas.heal()
    updates_upstream.reset()
    updates_upstream.body = b"one"
    slug, gateway = next(slugs), shared_replicas.a.gateway
    await gateway.create_tenant(slug)
    for uri in NOTES:
        await add(gateway, slug, "resources", text_resource(uri))
    await add(gateway, slug, "resource-templates", ROWS)
    key = await gateway.create_key(slug)
    yield Notes(shared_replicas, updates_upstream, slug, key, updates_database)
    (await gateway.admin.delete(f"/tenants/{slug}")).raise_for_status()
