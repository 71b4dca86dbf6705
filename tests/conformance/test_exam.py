"""The official suites against a tenant's URL: every floor holds, and nothing of 0.2 warns."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from tests.conformance.hall import Hall, open_hall, open_hall_behind_caddy
from tests.conformance.node import find_packages
from tests.conformance.suites import RUNS, Run, take
from tests.support.documents import pets
from tests.support.primitives import add, text_resource
from tests.support.replicas import Mode, tool_names

REQUIRED = tuple(run for run in RUNS if run.requirements is not None)
MODES: tuple[Mode, ...] = ("2026-07-28", "legacy")


@pytest.fixture(autouse=True)
def packages() -> None:
    """Both suites, fetched before anything else is started."""
    for name in ("stable", "next"):
        find_packages(name)


async def _sit(runs: Sequence[Run], hall: Hall, folder: Path) -> list[str]:
    """What the runs fall short of."""
    shortcomings: list[str] = []
    for run in runs:
        outcome = await take(run, hall, folder / run.name)
        shortcomings += [f"{run.name}: {said}" for said in outcome.shortcomings]
    return shortcomings


@asynccontextmanager
async def _another_at_work(hall: Hall) -> AsyncGenerator[list[str]]:
    """Another tenant of other data lists what it has in both eras while the block runs; gives all names that it saw."""
    gateway = hall.replicas.a.gateway
    seen: list[str] = []
    await gateway.create_tenant("other")
    await gateway.import_document("other", pets("https://api.example.com"))
    await add(gateway, "other", "resources", text_resource("note://1"))
    key = await gateway.create_key("other")

    async def work(mode: Mode) -> None:
        while True:
            async with hall.replicas.client("other", key, mode) as client:
                seen.extend(await tool_names(client))
                seen.extend(resource.name for resource in (await client.list_resources()).resources)
            await anyio.sleep(0.1)  # a tenant at work, not a storm

    async with anyio.create_task_group() as group:
        for mode in MODES:
            group.start_soon(work, mode)
        yield seen
        group.cancel_scope.cancel()


async def test_every_floor_holds_on_two_replicas_beside_another_tenant(
    database_url: str, redis_url: str, tmp_path: Path
) -> None:
    """MCP: the official suites pass in all revisions, each request at another replica; nobody sees more (SRV-5)."""
    async with open_hall(database_url, redis_url, tmp_path) as hall:
        async with _another_at_work(hall) as seen:
            assert await _sit(RUNS, hall, tmp_path / "results") == []

        assert len(set(hall.balancer.served)) == 2
        assert {"get_pet", "1"} <= set(seen)
        assert not any(name.startswith("test") for name in seen)


async def test_what_is_required_holds_after_a_replica_was_killed(
    database_url: str, redis_url: str, tmp_path: Path
) -> None:
    """Ours: what is left after a power cut speaks the protocol as well as the whole (SRV-5)."""
    async with open_hall(database_url, redis_url, tmp_path) as hall:
        hall.replicas.b.kill()

        assert await _sit(REQUIRED, hall, tmp_path / "results") == []


async def test_what_is_required_holds_through_a_proxy(database_url: str, redis_url: str, tmp_path: Path) -> None:
    """Ours: a proxy that knows nothing of the protocol takes nothing from it (SRV-5)."""
    async with open_hall_behind_caddy(database_url, redis_url, tmp_path) as hall:
        assert await _sit(REQUIRED, hall, tmp_path / "results") == []
