"""A new release while clients work: one replica after the other ends and comes back, without a failed call."""

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field

import anyio
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.deploy.topology import Mode, Replica, Topology, running_topology
from tests.support.documents import many, pets
from tests.support.replicas import tool_names, until
from tests.support.servers import TestServers
from tests.support.serving import http_client
from tests.support.upstream import recording_upstream

CLIENTS_PER_ERA = 2
PATIENCE_S = 60


@dataclass(slots=True)
class Work:
    """Results of the clients meanwhile."""

    calls: dict[Mode, int] = field(default_factory=dict[Mode, int])
    failures: list[str] = field(default_factory=list[str])
    streams: int = 0
    received: int = 0
    is_over: bool = False


@pytest.fixture
async def topology(servers: TestServers, tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Topology]:
    """Caddy and two replicas with the tenant `acme`, its pets, and an upstream that answers."""
    folder = tmp_path_factory.mktemp("rolling")
    with servers.database() as database:
        async with (
            recording_upstream() as upstream,
            running_topology(
                database.app_url, servers.empty_redis(), folder, egress_allow=[upstream.authority]
            ) as started,
        ):
            await started.gateway.create_tenant("acme")
            await started.gateway.import_document("acme", pets(upstream.url))
            policy = {"limits": {"calls_per_second": 10_000, "burst": 10_000}}
            (await started.gateway.admin.put("/tenants/acme/policy", json=policy)).raise_for_status()
            yield started


@pytest.mark.early
async def test_a_rolling_restart_fails_no_call_and_moves_the_streams(topology: Topology) -> None:
    """Ours: readiness first, then the connections; sessions and streams go on at the other replica (SRV-3, SRV-6)."""
    key = await topology.gateway.create_key("acme")
    work = Work()
    modes: tuple[Mode, ...] = ("2026-07-28", "legacy")
    with anyio.fail_after(3 * PATIENCE_S):
        async with anyio.create_task_group() as group:
            for mode in modes:
                for _ in range(CLIENTS_PER_ERA):
                    group.start_soon(_call_on, topology, key, mode, work)
            group.start_soon(_listen_on, topology, key, work)
            for replica in topology.replicas:
                await _worked(work, modes)
                assert await replica.stop() == 0
                await _worked(work, modes)
                replica.start()
                await replica.ready()
                await _served_by(topology, replica)  # before the other one may go
            assert work.streams >= 2, "the stream of at least one replica has moved"
            await topology.gateway.import_document("acme", many("https://api.example.com", 1), name="more")
            await _reached(lambda: work.received > 0)
            work.is_over = True
            group.cancel_scope.cancel()

    assert work.failures == []


async def _call_on(topology: Topology, key: str, mode: Mode, work: Work) -> None:
    """One client that calls again and again; a session begun before the restart is the one used after it."""
    async with topology.client("acme", key, mode) as client:
        assert "get_pet" in await tool_names(client)
        while not work.is_over:
            try:
                answer = await client.call_tool("get_pet", {"id": 7})
            except Exception as error:  # whatever it is, it is what must not happen
                work.failures.append(f"{mode}: {type(error).__name__}: {error}")
                return
            if answer.is_error:
                work.failures.append(f"{mode}: {answer.content}")
            work.calls[mode] = work.calls.get(mode, 0) + 1
            await anyio.sleep(0.02)  # a replica takes seconds to start, which is some hundred calls


async def _listen_on(topology: Topology, key: str, work: Work) -> None:
    """One client that listens, and listens again whenever its stream has come to its end."""
    async with topology.client("acme", key, "2026-07-28") as client:
        while not work.is_over:
            async with client.listen(tools_list_changed=True) as stream:
                work.streams += 1
                async for _ in stream:
                    work.received += 1


async def _worked(work: Work, modes: tuple[Mode, ...]) -> None:
    """Both eras have been answered a number of times more."""
    before = dict(work.calls)
    await _reached(
        lambda: bool(work.failures) or all(work.calls.get(mode, 0) >= before.get(mode, 0) + 20 for mode in modes)
    )
    assert work.failures == []


async def _served_by(topology: Topology, replica: Replica) -> None:
    """Caddy sends calls to this replica."""
    headers = {"authorization": f"Bearer {(topology.secrets / 'metrics_key').read_text()}"}
    async with http_client() as http:

        async def has_calls() -> bool:
            page = (await http.get(f"{replica.admin_url}/metrics", headers=headers)).text
            answers = [
                sample.value
                for family in text_string_to_metric_families(page)
                for sample in family.samples
                if sample.name == "gateway_calls_total"
            ]
            return sum(answers) >= 5

        await until(has_calls, seconds=PATIENCE_S)


async def _reached(claim: Callable[[], bool]) -> None:
    async def is_so() -> bool:
        return claim()

    await until(is_so, seconds=PATIENCE_S)
