"""Approved calls while replicas are killed: each runs at most once, and what is not known is marked so (R4)."""

import asyncio
import contextlib
import os
import secrets
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import anyio
import pytest
from sqlalchemy import text

from gateway.domain.identifiers import TenantId
from gateway.store.engine import Store
from tests.support.documents import pets
from tests.support.replicas import Replica, Replicas, running_replicas, until
from tests.support.servers import TestServers

SEED = int(os.environ.get("APPROVALS_SEED", "0")) or secrets.randbelow(1 << 31)
MAX_WORKERS = 6


@dataclass(slots=True)
class CountingUpstream:
    """An upstream that counts requests by the id in their path, answers late, and at times not at all."""

    random: Random
    port: int = 0
    seen: Counter[str] = field(default_factory=Counter[str])

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                self.seen[head.split(b" ", 2)[1].decode().rpartition("/")[2]] += 1
                await asyncio.sleep(self.random.uniform(0, 0.2))  # a kill meets requests that are on their way
                if self.random.random() < 0.1:
                    break
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}")
                await writer.drain()
        writer.close()


@asynccontextmanager
async def counting_upstream(random: Random) -> AsyncGenerator[CountingUpstream]:
    upstream = CountingUpstream(random)
    server = await asyncio.start_server(upstream.serve, "127.0.0.1", 0)
    upstream.port = server.sockets[0].getsockname()[1]
    try:
        yield upstream
    finally:
        server.close()


@dataclass(slots=True)
class Trial:
    """The world of one run, and what its clients saw.

    A client whose replica is killed and started again fails in many ways, all of which are suppressed.
    """

    replicas: Replicas
    upstream: CountingUpstream
    store: Store
    random: Random
    left: list[int]
    key: str = ""
    tenant: TenantId = field(default_factory=lambda: TenantId(""))
    results: dict[int, str] = field(default_factory=dict[int, str])
    kills: int = 0

    def up(self) -> Replica:
        return self.random.choice([one for one in self.replicas.all if one.is_up] or list(self.replicas.all))

    async def approve_all(self) -> None:
        """Approve whatever is pending, at whichever replica is up."""
        while True:
            with contextlib.suppress(Exception):
                admin = self.up().gateway.admin
                listed = await admin.get("/tenants/acme/approvals", params={"state": "pending"}, timeout=5)
                for one in listed.raise_for_status().json()["items"]:
                    await admin.post(f"/tenants/acme/approvals/{one['id']}/approve", json={}, timeout=5)
            await anyio.sleep(0.1)

    async def kill_at_random(self) -> None:
        """Kill one replica after the other, sometimes both, and start them again."""
        while True:
            await anyio.sleep(self.random.uniform(0.1, 0.8))
            for replica in self.random.sample(self.replicas.all, self.random.choice([1, 1, 1, 2])):
                replica.kill()
                self.kills += 1
            with anyio.CancelScope(shield=True):  # a start that is cancelled cannot be healed
                await anyio.sleep(self.random.uniform(0, 0.5))
                await self.replicas.heal()

    async def call_all(self) -> None:
        """Make the calls that are left, each until its client knows how it ended or cannot know."""
        while self.left:
            number = self.left.pop()
            in_session = number % 2 == 0
            for _ in range(60):
                with contextlib.suppress(Exception), anyio.fail_after(15):
                    state = await (self._in_session(number) if in_session else self._at_once(number))
                    self.results[number] = state
                    if state == "ok":
                        break
                if await self._is_over(number):  # else a replica that had just started could not run it
                    self.results.setdefault(number, "cut")
                    break
                await anyio.sleep(0.05)

    async def _at_once(self, number: int) -> str:
        """A call of 2026-07-28."""
        params = {"name": "delete_pet", "arguments": {"id": number}}
        answer = await self.up().gateway.rpc("acme", self.key, "tools/call", params)
        result = answer.raise_for_status().json()["result"]
        return _state_of(result.get("isError", False), result.get("_meta", {}))

    async def _in_session(self, number: int) -> str:
        """A call in a session, which waits for the decision."""
        async with self.replicas.client("acme", self.key, "legacy", to=self.up()) as client:
            result = await client.call_tool("delete_pet", {"id": number})
        return _state_of(result.is_error, result.meta or {})

    async def _is_over(self, number: int) -> bool:
        """True if the approval of the call is one that the call cannot attach to, so another one would be opened."""
        return (await self.states()).get(number) in {"running", "done", "unknown", "denied", "expired", "superseded"}

    async def rows(self) -> list[dict[str, Any]]:
        """Every approval, as the admin API shows it."""
        rows: list[dict[str, Any]] = []
        cursor: str | None = None
        while True:
            params = {"limit": "200"} if cursor is None else {"limit": "200", "cursor": cursor}
            answer = await self.up().gateway.admin.get("/tenants/acme/approvals", params=params)
            page = answer.raise_for_status().json()
            rows += page["items"]
            cursor = page["next_cursor"]
            if cursor is None:
                return rows

    async def states(self) -> dict[int, str]:
        """The state of each call's approval; of several the last."""
        with anyio.fail_after(30):
            while True:
                with contextlib.suppress(Exception):
                    return {_number(row): row["state"] for row in reversed(await self.rows())}
                await anyio.sleep(0.05)

    async def end_leases(self) -> None:
        """Let the time of every lease pass, and wait until the sweep has ended the runs that are lost."""
        await self.replicas.heal()
        async with self.store.transaction(self.tenant) as db:
            await db.execute(text("update approvals set leased_until = now() where state = 'running'"))
            await db.execute(text("update due_work set due_at = now() where id = 'approvals'"))

        async def are_ended() -> bool:
            return "running" not in (await self.states()).values()

        await until(are_ended, seconds=30)


def _number(row: dict[str, Any]) -> int:
    return int(row["request"]["url"].rpartition("/")[2])


def _state_of(is_error: bool, meta: dict[str, Any]) -> str:
    if not is_error:
        return "ok"
    facts = meta.get("gateway/approval")
    return "failed" if facts is None else str(facts["state"])


@asynccontextmanager
async def running_trial(servers: TestServers, folder: Path, calls: int) -> AsyncGenerator[Trial]:
    random = Random(SEED)
    with servers.database() as database:
        async with counting_upstream(random) as upstream, Store(database.app_url) as store:
            authority = f"127.0.0.1:{upstream.port}"
            redis_url = servers.own_redis()
            async with running_replicas(database.app_url, redis_url, folder, egress_allow=[authority]) as replicas:
                gateway = replicas.a.gateway
                await gateway.create_tenant("acme")
                await gateway.import_document("acme", pets(f"http://{authority}"))
                policy = await gateway.admin.patch("/tenants/acme/policy", json={"dangerous": "approve"})
                assert policy.status_code == 200, policy.text
                trial = Trial(replicas, upstream, store, random, list(range(1, calls + 1)))
                trial.key = await gateway.create_key("acme")
                trial.tenant = TenantId((await gateway.admin.get("/tenants/acme")).json()["id"])
                yield trial


@pytest.mark.parametrize("calls", [12, pytest.param(240, marks=pytest.mark.long)])
async def test_no_approved_call_runs_twice_or_is_lost(servers: TestServers, tmp_path: Path, calls: int) -> None:
    """Ours: under kill -9 at any moment, a call ran once, or not at all, or its outcome is marked unknown (SAF-3)."""
    print(f"APPROVALS_SEED={SEED}")
    async with running_trial(servers, tmp_path, calls) as trial:
        async with anyio.create_task_group() as background:
            background.start_soon(trial.approve_all)
            background.start_soon(trial.kill_at_random)
            async with anyio.create_task_group() as workers:
                for _ in range(min(MAX_WORKERS, calls // 4)):
                    workers.start_soon(trial.call_all)
            background.cancel_scope.cancel()
        await trial.end_leases()

        rows = await trial.rows()
        states = Counter(row["state"] for row in rows)
        lost = [_number(row) for row in rows if row["state"] == "unknown"]
        print(
            f"arrived={sum(trial.upstream.seen.values())} of unknown={sum(trial.upstream.seen[str(n)] for n in lost)}"
        )
        print(f"kills={trial.kills} results={Counter(trial.results.values())} states={states}")
        by_call: dict[int, list[dict[str, Any]]] = {}
        for row in rows:
            by_call.setdefault(_number(row), []).append(row)
        assert len(trial.results) == calls
        for number in range(1, calls + 1):
            sent = trial.upstream.seen[str(number)]
            [row] = by_call[number]
            assert sent <= 1, f"call {number} was sent {sent} times: {row}"
            assert row["state"] in {"done", "unknown"}, row
            if trial.results[number] == "ok":
                assert (sent, row["state"], row["outcome"]) == (1, "done", "ok"), row
            if row["state"] == "done" and row["outcome"] == "ok":
                assert sent == 1, row
        async with trial.store.transaction(trial.tenant) as db:
            recorded = (
                await db.execute(text("select action, kind, count(*) from audit_entries group by action, kind"))
            ).all()
        counted = {(action, kind): number for action, kind, number in recorded}
        # An entry is stored before its change commits, so a kill between the two leaves one more.
        assert counted["approval.requested", "call"] >= calls
        assert counted["approval.approved", "call"] >= calls
        assert counted["call", "call.intent"] >= sum(trial.upstream.seen.values())
