"""One tenant takes all that it can of each replica-wide pool: another tenant's next request finds a place."""

import gc
import re
import threading
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from gateway.calls.arguments.costly_validation import CostlyValidation
from gateway.catalog.audit import TrailVerifier
from gateway.catalog.sources.worker_pool import CONCURRENT_WORKERS, WorkerPool
from gateway.domain.fairness.share import FairSlotPool, share_of
from gateway.domain.fairness.thread_kinds import HANDLERS, NAME_LOOKUPS, THREAD_KINDS
from gateway.domain.fairness.threads import ThreadPool, thread_pool
from gateway.domain.identifiers import TenantId
from gateway.errors import DatabaseUnavailable, LimitExceeded
from gateway.protocol.in_flight import InFlightLimiter
from gateway.store.audit import signed_heads
from gateway.store.audit.hash_chain import CATALOG
from gateway.store.audit.head_signer import AuditSigner
from gateway.store.audit.unsigned_tenants import UnsignedTenants
from gateway.store.encryption import EnvelopeCipher
from gateway.store.engine import Store
from gateway.store.kinds.tenants import TENANTS
from gateway.upstream.egress import resolver
from gateway.upstream.egress.resolver import SystemLookup
from gateway.web.console.endpoint import ApprovalPages
from gateway.web.webhook_receiver import WebhookReceiver
from tests.integration.store.samples import append_change, make_tenant
from tests.support.loops import unseen
from tests.support.servers import TestServers

EVIL, THIRD = TenantId("ten_evil"), TenantId("ten_third")


def _pools() -> list[FairSlotPool]:
    """Every gate of a replica, as it is built."""
    nothing: Any = None
    credentials: Any = SimpleNamespace(refusals=nothing)
    store = Store("postgresql://unused")
    hooks = WebhookReceiver(nothing, nothing, nothing)
    pages = ApprovalPages(nothing, credentials, nothing, keys=[bytes(32)])
    workers, limiter = WorkerPool(), InFlightLimiter()
    verifier = TrailVerifier(store, EnvelopeCipher(["secret-key-of-the-tests-0123456789abc"]), nothing)
    parts = (store, verifier, hooks, pages, workers, limiter, CostlyValidation())
    return [*(part.slot_pool for part in parts), *(ThreadPool(kind).slot_pool for kind in THREAD_KINDS)]


def test_the_page_has_the_size_and_the_share_of_each_pool() -> None:
    """ISO-3: docs/security/fair-share.md is what an operator sizes by."""
    page = (Path(__file__).parents[2] / "docs/security/fair-share.md").read_text().replace(",", "")
    rows = {
        name: (int(size), int(share))
        for name, size, share in re.findall(r"^\| (\D+?) \| (\d+)[^|]* \| (\d+)", page, re.MULTILINE)
    }
    reported = {name.removesuffix("s"): row for name, row in rows.items()}
    pools = _pools()

    assert len(pools) == 7 + len(THREAD_KINDS)
    for pool in pools:
        name = pool.name.replace("verifications", "verifications of audit trails")
        name = name.replace("webhook verifications of audit trails", "webhook verifications")
        assert reported[name.removesuffix("s")] == (pool.slots, pool.share), pool.name
    assert reported["audit queue"] == (16_384, share_of(16_384))


@pytest.fixture
async def store(servers: TestServers) -> AsyncGenerator[Store]:
    """A store with the pool that a replica has, whose waiters give up at once."""
    with servers.database() as database:
        async with Store(database.app_url, timeout_s=0) as store:
            yield store


async def test_one_tenant_holds_a_quarter_of_the_connections_to_postgresql(store: Store) -> None:
    """ISO-3: changes of one tenant that wait for each other leave six of eight connections to the others."""
    async with AsyncExitStack() as stack:
        for _ in range(store.slot_pool.share):
            await stack.enter_async_context(store.transaction(EVIL))
        with pytest.raises(DatabaseUnavailable, match="share of the connections to PostgreSQL"):
            await stack.enter_async_context(store.transaction(EVIL))
        with pytest.raises(DatabaseUnavailable, match="share"):
            await stack.enter_async_context(store.reading(EVIL, within_s=1))

        for _ in range(store.slot_pool.share):
            await stack.enter_async_context(store.transaction(THIRD))
        await stack.enter_async_context(store.unscoped())

        assert (store.slot_pool.slots, store.slot_pool.held(EVIL), store.slot_pool.held(THIRD)) == (8, 2, 2)
    assert store.slot_pool.busy == 0


async def test_a_tenant_at_its_share_does_not_delay_the_signing_of_others(store: Store) -> None:
    """ISO-3: a round of signing goes from tenant to tenant, and one that uses its share ends no round."""
    moved = UnsignedTenants()
    signer = AuditSigner(store, moved, key=b"s" * 32, anchor_keys=[b"a" * 32])
    for tenant in (EVIL, THIRD):
        async with store.transaction(tenant) as db:
            await TENANTS.insert(tenant, db, replace(make_tenant(tenant[4:]), id=tenant))
            await append_change(tenant, db)
    async with AsyncExitStack() as stack:
        for _ in range(store.slot_pool.share):
            await stack.enter_async_context(store.transaction(EVIL))
        for tenant in (EVIL, THIRD):
            moved.note(tenant, CATALOG)
        await signer.sign()

    for tenant in (EVIL, THIRD):
        async with store.transaction(tenant) as db:
            assert await signed_heads.signatures(tenant, db, after=None, limit=10)


async def test_a_transaction_that_fails_leaves_its_place(store: Store) -> None:
    """Ours: whatever ends it, and also where no connection can be had."""
    for error in (ValueError, DatabaseUnavailable):
        with pytest.raises(error):
            async with store.transaction(EVIL):
                raise error("x")
    await store.__aexit__(None, None, None)
    with pytest.raises(DatabaseUnavailable):
        async with store.transaction(EVIL):
            pass

    assert (store.slot_pool.busy, store.slot_pool.waiting) == (0, 0)


async def test_one_tenant_holds_a_quarter_of_the_handler_threads() -> None:
    """ISO-3: functions that hang hold the tenant's threads, given up or not, and no more."""
    threads, gate, answers = ThreadPool(replace(HANDLERS, threads=8)), threading.Event(), list[str]()

    async def ask(tenant: str) -> None:
        answers.append(await threads.run(tenant, lambda: tenant))

    async with anyio.create_task_group() as group:
        for _ in range(8):
            group.start_soon(threads.run, EVIL, gate.wait)
        await anyio.wait_all_tasks_blocked()
        assert threads.slot_pool.held(EVIL) == threads.slot_pool.share == 2
        with anyio.fail_after(30):
            await ask(THIRD)
        gate.set()

    assert (answers, threads.slot_pool.busy) == ([THIRD], 0)


async def test_one_tenant_holds_one_of_two_document_workers() -> None:
    """ISO-3: a tenant whose documents take long keeps one worker; its queue is a quarter of the queue."""
    workers = WorkerPool()
    places = workers.slot_pool
    assert places.slots == CONCURRENT_WORKERS == 2
    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(places.take, EVIL)
        await anyio.wait_all_tasks_blocked()
        assert (places.held(EVIL), places.waiting) == (1, 4)
        with pytest.raises(LimitExceeded):
            await places.take(EVIL)
        assert places.try_take(THIRD)
        group.cancel_scope.cancel()


async def test_names_below_one_domain_hold_a_quarter_of_the_lookups(monkeypatch: pytest.MonkeyPatch) -> None:
    """ISO-3: a silent name server of the attacker's holds its share of the threads, under any number of names."""
    gate, asked = threading.Event(), list[str]()

    def ask(host: str, port: int) -> list[str]:
        asked.append(host)
        if host.endswith("attacker.example"):
            gate.wait(30)
        return [f"192.0.2.{port}"]

    monkeypatch.setattr(resolver, "_ask_system", ask)  # the operating system's resolver, not our code
    lookup = SystemLookup()
    async with anyio.create_task_group() as group:
        for number in range(40):
            group.start_soon(lookup.resolve, f"n{number}.attacker.example", 1)
            group.start_soon(lookup.resolve, f"N{number}.Attacker.Example.", 1)
        await anyio.wait_all_tasks_blocked()
        slot_pool = thread_pool(NAME_LOOKUPS).slot_pool
        assert slot_pool.held("attacker.example") == slot_pool.share == 8
        with anyio.fail_after(30):
            assert await lookup.resolve("api.third.example", 2) == ["192.0.2.2"]
        group.cancel_scope.cancel()
        gate.set()


async def test_a_lookup_that_fails_after_its_caller_has_left_is_no_unhandled_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ours: the failure of a name that no caller waits for any more is not reported by the event loop (ISO-3)."""
    gate = threading.Event()

    def ask(host: str, port: int) -> list[str]:
        gate.wait(30)
        raise OSError("no such name")

    monkeypatch.setattr(resolver, "_ask_system", ask)
    lookup = SystemLookup()
    async with anyio.create_task_group() as group:
        group.start_soon(lookup.resolve, "gone.example", 1)
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
    gate.set()
    with anyio.fail_after(30):
        while thread_pool(NAME_LOOKUPS).slot_pool.held("gone.example"):
            await anyio.lowlevel.checkpoint()
    gc.collect()  # the loop reports an unretrieved error when its future is collected

    assert unseen() == []
