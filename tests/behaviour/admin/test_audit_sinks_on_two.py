"""Sinks of audit trails on two replicas: one ends, or is stopped, in the middle of a delivery."""

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.support.replicas import Replicas, running_replicas, until
from tests.support.servers import TestDatabase, TestServers, execute
from tests.support.upstream import RecordingUpstream, recording_upstream

_SINK = "/tenants/acme/audit-sinks/siem"
_DUE = "insert into due_work select tenant_id, id, 'audit_sink', now() from audit_sinks on conflict do nothing"


@pytest.mark.early
async def test_another_replica_continues_a_delivery(servers: TestServers, tmp_path: Path) -> None:
    """Ours: entries on their way are sent again by the next replica; the slower one moves no place (SAF-8)."""
    with servers.database() as database:
        async with (
            recording_upstream() as siem,
            running_replicas(
                database.app_url, servers.empty_redis(), tmp_path, egress_allow=[siem.authority]
            ) as replicas,
        ):
            for is_killed in (False, True):
                await _check_delivery(replicas, database, siem, is_killed=is_killed)
                siem.reset()
                (await replicas.b.gateway.admin.delete("/tenants/acme")).raise_for_status()


async def _check_delivery(
    replicas: Replicas, database: TestDatabase, siem: RecordingUpstream, *, is_killed: bool
) -> None:
    """Begin at the first replica, end or stop it, and continue at the second one."""
    await _begin(replicas, database, siem)
    if is_killed:
        replicas.a.kill()
    else:
        replicas.a.pause()
    replicas.b.resume()
    await replicas.b.gateway.create_key("acme")
    await execute(database.superuser_url, "update due_work set due_at = now()")  # the lease has ended
    assert siem.gate is not None
    siem.gate.set()
    await _until_delivered(replicas, siem)
    if not is_killed:
        replicas.a.resume()
    await replicas.b.gateway.create_key("acme")
    await _until_delivered(replicas, siem)
    trail, shown = await _trail(replicas), (await replicas.b.gateway.admin.get(_SINK)).json()["status"]

    assert _delivered(siem).keys() == trail
    assert max(_delivered(siem).values()) == 2
    assert shown["delivered"] == len(trail)


async def _begin(replicas: Replicas, database: TestDatabase, siem: RecordingUpstream) -> None:
    """Let the first replica send to an endpoint that does not answer; the second one is stopped."""
    gateway, siem.gate = replicas.a.gateway, asyncio.Event()
    await gateway.create_tenant("acme")
    body = {"name": "siem", "kind": "https", "target": "https://siem.example/", "whole": True, "enabled": False}
    (await gateway.admin.post("/tenants/acme/audit-sinks", json=body)).raise_for_status()
    replicas.b.pause()
    await execute(database.superuser_url, f"update audit_sinks set target = '{siem.url}/', enabled = true")
    await execute(database.superuser_url, _DUE)
    with anyio.fail_after(20):
        await siem.arrived.wait()


def _delivered(siem: RecordingUpstream) -> Counter[str]:
    return Counter(json.loads(line)["id"] for seen in siem.seen for line in seen.body.splitlines())


async def _trail(replicas: Replicas) -> set[str]:
    items: list[dict[str, Any]] = (await replicas.b.gateway.admin.get("/tenants/acme/audit?limit=200")).json()["items"]
    return {item["id"] for item in items}


async def _until_delivered(replicas: Replicas, siem: RecordingUpstream) -> None:
    async def is_delivered() -> bool:
        shown = (await replicas.b.gateway.admin.get(_SINK)).json()["status"]
        return shown["waiting_since"] is None and _delivered(siem).keys() >= await _trail(replicas)

    await until(is_delivered, seconds=30)
