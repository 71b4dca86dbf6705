"""A tenant with slow, asking and failing tools, and its client; on one gateway, or on two replicas."""

import itertools
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from gateway.store.database.connection import PostgresConnection, connect_owner
from tests.support.documents import pets
from tests.support.gateway import RunningGateway
from tests.support.primitives import add, static_tool, tool
from tests.support.replicas import Replicas, running_replicas
from tests.support.servers import TestServers
from tests.support.stand import database, gateway, own_stand, redis_url, stand, upstream
from tests.support.stand import package_stand as common_stand
from tests.support.tasks import TaskClient
from tests.support.upstream import RecordingUpstream, recording_upstream

__all__ = ["common_stand", "database", "gateway", "own_stand", "redis_url", "stand", "upstream"]

NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
REQUIRED = {"execution": {"taskSupport": "required"}}


def ask(key: str) -> dict[str, Any]:
    """A step that asks for a name."""
    return {"ask": {"key": key, "message": f"Which {key}?", "schema": NAME}, "as": key}


def tools_of(upstream: RecordingUpstream) -> dict[str, dict[str, Any]]:
    """Tools of every kind that matters to tasks, by name."""
    get, post = ({"http": {"method": method, "url": f"{upstream.url}/slow"}} for method in ("GET", "POST"))
    reported = {"return": {"text": "{{ first.content.name }}"}}
    both = {"return": {"text": "{{ first.content.name }} {{ second.content.name }}"}}
    steps: dict[str, list[dict[str, Any]]] = {
        "asks": [ask("first"), reported],
        "asks_both": [{"gather": [ask("first"), ask("second")]}, both],
        "asks_twice": [ask("first"), ask("second"), both],
        "reads": [get, {"return": {"text": "read"}}],
        "writes": [post, {"return": {"text": "written"}}],
        "writes_then_asks": [post, ask("first"), reported],
        "roots": [{"roots": {"key": "places"}, "as": "places"}, {"return": {"text": "{{ places | size }}"}}],
        "errs": [{"return": {"text": "no", "isError": True}}],
    }
    first = {"kind": "steps", "steps": [ask("first"), get, reported]}
    forbidden = {"execution": {"taskSupport": "forbidden"}}
    slow = {"kind": "steps", "steps": [get, {"return": {"text": "read"}}]}
    return {
        **{name: tool(name, {"kind": "steps", "steps": listed}, definition=REQUIRED) for name, listed in steps.items()},
        "asks_first": tool("asks_first", first),
        "quick": static_tool("quick"),
        "never_a_task": tool("never_a_task", slow, definition=forbidden),
    }


async def furnish(gateway: RunningGateway, slug: str, upstream: RecordingUpstream) -> None:
    """A tenant with the pets document and all these tools."""
    await gateway.create_tenant(slug)
    await gateway.import_document(slug, pets(upstream.url))
    for declared in tools_of(upstream).values():
        await add(gateway, slug, "tools", declared)


@pytest.fixture
async def client(gateway: RunningGateway, upstream: RecordingUpstream) -> TaskClient:
    """A client of the tenant that accepts tasks and answers forms."""
    await gateway.create_tenant("acme")
    await gateway.import_document("acme", pets(upstream.url))
    key = await gateway.create_key("acme", subject="ada")
    return TaskClient(gateway, "acme", key, tools=tools_of(upstream))


@dataclass(frozen=True, slots=True)
class Pair:
    """Two replicas, their database, and an upstream."""

    replicas: Replicas
    owner: PostgresConnection
    upstream: RecordingUpstream

    async def end_leases(self, task: str) -> None:
        """Let the time of a task's lease pass."""
        await self.owner.execute("update mcp_tasks set leased_until = now() - interval '1 s' where id = $1", task)
        await self.owner.execute("update due_work set due_at = now() - interval '1 s' where id = $1", task)


@pytest.fixture(scope="package")
async def shared_pair(servers: TestServers, tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Pair]:
    """Two replicas for all tests."""
    with servers.database() as database, servers.held_redis() as redis_url:
        owner = await connect_owner(database.superuser_url)
        folder = tmp_path_factory.mktemp("replicas")
        async with (
            recording_upstream() as upstream,
            running_replicas(database.app_url, redis_url, folder, egress_allow=[upstream.authority]) as replicas,
        ):
            yield Pair(replicas, owner, upstream)
        await owner.close()


@pytest.fixture
async def pair(shared_pair: Pair) -> AsyncGenerator[Pair]:
    """Both replicas, up and well."""
    await shared_pair.replicas.heal()
    shared_pair.upstream.reset()
    yield shared_pair
    shared_pair.upstream.reset()


@pytest.fixture(scope="package")
def slugs() -> Iterator[str]:
    """Names that no other test has taken."""
    return (f"acme-{number}" for number in itertools.count(1))


@pytest.fixture
async def clients(pair: Pair, slugs: Iterator[str]) -> tuple[TaskClient, TaskClient]:
    """One client at each replica, with the same key."""
    slug, gateway = next(slugs), pair.replicas.a.gateway
    await furnish(gateway, slug, pair.upstream)
    at_a = TaskClient(gateway, slug, await gateway.create_key(slug))
    return at_a, replace(at_a, gateway=pair.replicas.b.gateway)
