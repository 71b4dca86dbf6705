"""R6: replicas are stopped and restarted in turn, with notice, behind Caddy while clients of the SDK call.

The topology is that of `docker-compose.yml`, as processes: two replicas, and Caddy with TLS in front of them.
"""

import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
from mcp.client.subscriptions import SubscriptionLost

from benchmarks.faults.world import Row, reached
from tests.deploy.programs import ProgramMissing
from tests.deploy.topology import Mode, Topology, running_topology
from tests.support.documents import pets
from tests.support.servers import running_servers
from tests.support.upstream import recording_upstream

_SLUG = "acme"
_MODES: tuple[Mode, ...] = ("2026-07-28", "legacy")
_CLIENTS = 3
_PAUSE_S = 0.1
_BETWEEN_S = 3.0


@dataclass(slots=True)
class _Work:
    """The clients' calls, failures and streams, and the exit codes of the replicas."""

    calls: dict[Mode, int] = field(default_factory=lambda: dict.fromkeys(_MODES, 0))
    failures: list[str] = field(default_factory=list[str])
    streams: int = 0
    lost: int = 0
    exits: list[int] = field(default_factory=list[int])


async def measure_rolling(rounds: int) -> Sequence[Row]:
    """Restart both replicas in turn, `rounds` times."""
    work = _Work()
    try:
        async with _topology() as topology:
            await _measure(topology, work, rounds)
    except ProgramMissing as missing:
        return [Row(promise="R6", what="not measured", figure=str(missing))]
    counted = " and ".join(f"{count:,} ({mode})" for mode, count in work.calls.items())
    figures = (
        ("restarts with notice, one replica after the other", f"{len(work.exits)}, exit codes {set(work.exits)}", ""),
        ("calls meanwhile, through Caddy, none repeated", counted, ""),
        ("calls that failed", str(len(work.failures)), "0"),
        ("listen streams ended by a restart, with their final result", str(work.streams - 1 - work.lost), ""),
        ("listen streams that broke", str(work.lost), "0"),
    )
    return [
        *(Row(promise="R6", what=what, figure=figure, bar=bar) for what, figure, bar in figures),
        *(Row(promise="R6", what="a failure", figure=failure[:120]) for failure in work.failures[:3]),
    ]


@asynccontextmanager
async def _topology() -> AsyncGenerator[Topology]:
    with running_servers() as servers, servers.database() as database, tempfile.TemporaryDirectory() as folder:
        async with (
            recording_upstream() as upstream,
            running_topology(
                database.app_url, servers.empty_redis(), Path(folder), egress_allow=[upstream.authority]
            ) as topology,
        ):
            await topology.gateway.create_tenant(_SLUG)
            await topology.gateway.import_document(_SLUG, pets(upstream.url))
            policy = {"limits": {"calls_per_second": 10_000, "burst": 10_000}}
            (await topology.gateway.admin.put(f"/tenants/{_SLUG}/policy", json=policy)).raise_for_status()
            yield topology


async def _measure(topology: Topology, work: _Work, rounds: int) -> None:
    key = await topology.gateway.create_key(_SLUG)
    async with anyio.create_task_group() as tasks:
        for mode in _MODES:
            for _ in range(_CLIENTS):
                tasks.start_soon(_call_on, topology, key, mode, work)
        tasks.start_soon(_listen_on, topology, key, work)
        await reached(lambda: all(work.calls.values()) and work.streams > 0)
        for _ in range(rounds):
            for replica in topology.replicas:
                await anyio.sleep(_BETWEEN_S)
                work.exits.append(await replica.stop())
                replica.start()
                await replica.ready()
        await anyio.sleep(_BETWEEN_S)
        tasks.cancel_scope.cancel()


async def _call_on(topology: Topology, key: str, mode: Mode, work: _Work) -> None:
    """One client, which reconnects only after a failed call."""
    while True:
        try:
            async with topology.client(_SLUG, key, mode) as client:
                while True:
                    answer = await client.call_tool("get_pet", {"id": 7})
                    if answer.is_error:
                        work.failures.append(f"{mode}: {answer.content}")
                    work.calls[mode] += 1
                    await anyio.sleep(_PAUSE_S)
        except Exception as error:  # any exception is a failure of the promise
            work.failures.append(f"{mode}: {error!r}")


async def _listen_on(topology: Topology, key: str, work: _Work) -> None:
    """One client that listens, and opens a new stream whenever one ends."""
    async with topology.client(_SLUG, key, "2026-07-28") as client:
        while True:
            work.streams += 1
            try:
                async with client.listen(tools_list_changed=True) as stream:
                    async for _ in stream:
                        pass
            except SubscriptionLost:
                work.lost += 1
