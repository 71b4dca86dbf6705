"""Two replicas with a tenant whose tools report progress, log, ask the user, and run long."""

import itertools
from collections.abc import AsyncGenerator, Collection, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import urlsplit

import httpx2
import pytest
from mcp import Client
from mcp.client.sse import sse_client

from tests.support.documents import pets
from tests.support.events import Wire
from tests.support.gateway import RunningGateway
from tests.support.primitives import NAMED, add, text_resource, tool
from tests.support.replicas import URL, Replica, Replicas, commanding, running_replicas
from tests.support.servers import TestServers
from tests.support.upstream import RecordingUpstream, recording_upstream

CONFIRM: dict[str, Any] = {
    "type": "object",
    "properties": {"confirm": {"type": "boolean"}},
    "required": ["confirm"],
}
IDLE_S = 6
"""The life of an unused session at the impatient replicas, whose streams are kept alive three times in it."""

OWN = ("wait", "silent", "danger", "echo")
"""The tools of a tenant of one test."""

STEPS = 6
URIS = ("note://1", "note://2", "note://3")


def talking_tools() -> list[dict[str, Any]]:
    """The tools of the tenant; what has to wait for the test waits for the upstream's gate."""
    done = {"return": {"text": "done"}}
    gate = {"call": {"tool": "get_pet", "arguments": {"id": 7}}}
    ask = {"ask": {"key": "ok", "message": "Really?", "schema": CONFIRM}, "as": "ok"}
    first, second = ([{"progress": {"progress": n, "total": STEPS}} for n in part] for part in ((1, 2, 3), (4, 5, 6)))
    lists: dict[str, list[dict[str, Any]]] = {
        "count": [*first, gate, *second, done],
        "wait": [{"progress": 1}, gate, done],
        "silent": [gate, done],
        "danger": [ask, {"return": {"text": "{{ ok.action }} {{ ok.content.confirm }}"}}],
        "page": [{"ask": {"key": "p", "message": "Go there", "url": "https://example.com/x"}, "as": "p"}, done],
        "twice": [
            ask,
            {"call": {"tool": "get_pet", "arguments": {"id": 1}}},
            {"ask": {"key": "more", "message": "And this?", "schema": CONFIRM}, "as": "more"},
            {"return": {"text": "{{ ok.action }} {{ more.action }}"}},
        ],
        "sample": [
            {
                "sample": {
                    "key": "s",
                    "messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}],
                    "maxTokens": 10,
                },
                "as": "s",
            },
            {"return": {"text": "{{ s.content.text }}"}},
        ],
        "roots": [{"roots": {"key": "r"}, "as": "r"}, {"return": {"text": "{{ r[0].uri }}"}}],
        "chatter": [
            {"log": {"level": "debug", "data": "quiet"}},
            {"log": {"level": "error", "data": {"loud": True}, "logger": "t"}},
            done,
        ],
    }
    tools = [tool(name, {"kind": "steps", "steps": steps}, safety="safe") for name, steps in lists.items()]
    echo = {"kind": "template", "text": "hello {{ name }}"}
    return [*tools, tool("echo", echo, schema=NAMED)]


@dataclass(slots=True)
class Talk:
    """The tenant, and everything that talks to it."""

    replicas: Replicas
    upstream: RecordingUpstream
    slug: str
    key: str
    redis_url: str
    stack: AsyncExitStack = field(repr=False)

    @property
    def gateway(self) -> RunningGateway:
        """The first replica's admin API."""
        return self.replicas.a.gateway

    async def wire(self, *, key: str | None = None, revision: str = "2025-11-25", **capabilities: Any) -> Wire:
        """An open session, begun at the first replica."""
        wire = Wire(self.replicas, self.slug, key or self.key, revision=revision)
        self.stack.push_async_callback(wire.close)
        await wire.initialize(self.replicas.a, **capabilities)
        return wire

    @asynccontextmanager
    async def old_client(self, *, stream: Replica, messages: Replica, **more: Any) -> AsyncGenerator[Client]:
        """The SDK's client of HTTP+SSE, with its stream on one replica and its messages at another."""

        def pool(headers: dict[str, str] | None = None, timeout: Any = None, auth: Any = None) -> httpx2.AsyncClient:
            transport = _Split(stream, messages)
            return httpx2.AsyncClient(transport=transport, headers=headers, timeout=timeout, auth=auth)

        headers = {"authorization": f"Bearer {self.key}"}
        opened = sse_client(f"{URL}/t/{self.slug}/sse", headers=headers, httpx_client_factory=pool)
        async with Client(opened, mode="legacy", **more) as client:
            yield client

    def stored(self, pattern: str) -> list[bytes]:
        """Content of Redis under such names."""
        with commanding(self.redis_url) as command:
            return cast(list[bytes], command("KEYS", pattern))

    async def update(self, uri: str, gateway: RunningGateway | None = None) -> None:
        """Report that a resource has changed."""
        answer = await (gateway or self.gateway).admin.post(
            f"/tenants/{self.slug}/resources/updated", json={"uri": uri}
        )
        assert answer.status_code == 202, answer.text


class _Split(httpx2.AsyncHTTPTransport):
    """GET requests go to one replica, all others to another."""

    def __init__(self, stream: Replica, messages: Replica) -> None:
        super().__init__(trust_env=False)
        self._stream = stream
        self._messages = messages

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send it there."""
        replica = self._stream if request.method == "GET" else self._messages
        request.url = request.url.copy_with(port=urlsplit(replica.gateway.url).port)
        return await super().handle_async_request(request)


@pytest.fixture(scope="package")
async def upstream() -> AsyncGenerator[RecordingUpstream]:
    """An upstream that writes down what it is asked."""
    async with recording_upstream() as started:
        yield started


@pytest.fixture(scope="package")
def common_redis(servers: TestServers) -> str:
    """The Redis of both replicas; other gateways of these tests empty theirs."""
    return servers.own_redis()


@pytest.fixture(scope="package")
async def shared_replicas(
    servers: TestServers, common_redis: str, upstream: RecordingUpstream, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[Replicas]:
    """Two gateway processes over one database and one Redis, which may call the recording upstream."""
    with servers.database() as database:
        async with running_replicas(
            database.app_url,
            common_redis,
            tmp_path_factory.mktemp("replicas"),
            egress_allow=[upstream.authority],
        ) as started:
            yield started


@pytest.fixture(scope="package")
async def impatient_replicas(
    servers: TestServers, common_redis: str, upstream: RecordingUpstream, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[Replicas]:
    """Two more replicas, whose sessions are short-lived, and which are impatient with quiet streams therefore."""
    with servers.database() as database:
        async with running_replicas(
            database.app_url,
            common_redis,
            tmp_path_factory.mktemp("impatient"),
            egress_allow=[upstream.authority],
            session_idle_s=str(IDLE_S),
        ) as started:
            yield started


@pytest.fixture(scope="package")
async def impatient_slug(impatient_replicas: Replicas, upstream: RecordingUpstream) -> str:
    """A tenant of theirs for all tests."""
    await furnish(impatient_replicas.a.gateway, "impatient", upstream, OWN)
    return "impatient"


@pytest.fixture(scope="package")
def slugs() -> Iterator[str]:
    """Names that no other test has taken."""
    return (f"talk-{number}" for number in itertools.count(1))


@pytest.fixture(scope="package")
async def common_slug(shared_replicas: Replicas, upstream: RecordingUpstream) -> str:
    """A tenant for all tests that change nothing of it and count nothing in it."""
    await shared_replicas.heal()
    gateway = shared_replicas.a.gateway
    await furnish(gateway, "talk", upstream)
    limits = {"limits": {"calls_per_second": 10_000, "burst": 10_000}}
    (await gateway.admin.patch("/tenants/talk/policy", json=limits)).raise_for_status()
    return "talk"


@pytest.fixture
async def talk(
    shared_replicas: Replicas, common_slug: str, common_redis: str, upstream: RecordingUpstream
) -> AsyncGenerator[Talk]:
    """A key of this test alone in the tenant that it shares with others, on two replicas that are up and well."""
    await _prepare(shared_replicas, upstream)
    async with _talking(shared_replicas, common_slug, common_redis, upstream) as talk:
        yield talk


@pytest.fixture
async def own_talk(
    shared_replicas: Replicas, slugs: Iterator[str], common_redis: str, upstream: RecordingUpstream
) -> AsyncGenerator[Talk]:
    """A tenant of this test alone, on two replicas that are up and well."""
    await _prepare(shared_replicas, upstream)
    slug = next(slugs)
    await furnish(shared_replicas.a.gateway, slug, upstream, OWN)
    async with _talking(shared_replicas, slug, common_redis, upstream) as talk:
        yield talk


@pytest.fixture
async def bare_talk(
    shared_replicas: Replicas, slugs: Iterator[str], common_redis: str, upstream: RecordingUpstream
) -> AsyncGenerator[Talk]:
    """A tenant of this test alone that has resources and one tool, and calls no upstream."""
    await _prepare(shared_replicas, upstream)
    slug, gateway = next(slugs), shared_replicas.a.gateway
    await gateway.create_tenant(slug)
    await _add(gateway, slug, ("echo",))
    async with _talking(shared_replicas, slug, common_redis, upstream) as talk:
        yield talk


@pytest.fixture
async def impatient_talk(
    impatient_replicas: Replicas, impatient_slug: str, common_redis: str, upstream: RecordingUpstream
) -> AsyncGenerator[Talk]:
    """A key of this test alone at the impatient replicas, which are up and well."""
    await _prepare(impatient_replicas, upstream)
    async with _talking(impatient_replicas, impatient_slug, common_redis, upstream) as talk:
        yield talk


async def _prepare(replicas: Replicas, upstream: RecordingUpstream) -> None:
    await replicas.heal()
    upstream.seen.clear()
    upstream.gate = None
    upstream.arrived.clear()


async def furnish(
    gateway: RunningGateway, slug: str, upstream: RecordingUpstream, tools: Collection[str] | None = None
) -> None:
    """Create a tenant with a document, resources, and its tools: all, or those named."""
    await gateway.create_tenant(slug)
    await gateway.import_document(slug, pets(upstream.url))
    await _add(gateway, slug, tools)


async def _add(gateway: RunningGateway, slug: str, tools: Collection[str] | None) -> None:
    for body in talking_tools():
        if tools is None or body["definition"]["name"] in tools:
            await add(gateway, slug, "tools", body)
    for uri in URIS:
        await add(gateway, slug, "resources", text_resource(uri))


@asynccontextmanager
async def _talking(replicas: Replicas, slug: str, redis_url: str, upstream: RecordingUpstream) -> AsyncGenerator[Talk]:
    async with AsyncExitStack() as stack:
        yield Talk(replicas, upstream, slug, await replicas.a.gateway.create_key(slug), redis_url, stack)
        if upstream.gate is not None:
            upstream.gate.set()
