"""Jobs and changes of the same object at the same time, over a real database: neither fails because of the other."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import orjson
import pytest

from gateway.catalog import audit_sinks, idempotency
from gateway.catalog.idempotency import KeyedRequest
from gateway.catalog.identity import oauth_clients, sign_ins
from gateway.catalog.kinds.audit_sinks import SINKS
from gateway.catalog.kinds.watches import WATCHES
from gateway.catalog.kinds.webhook_endpoints import ENDPOINTS
from gateway.catalog.notifications import deliveries
from gateway.catalog.sources import imports, refreshes
from gateway.catalog.sources.drafts import SourceDraft
from gateway.catalog.updates import watches
from gateway.domain.identifiers import WatchId, mint
from gateway.domain.tenancy.principals import Operator
from gateway.domain.updates.audit_sinks import SinkKind
from gateway.domain.updates.watches import Sighting, Watch
from gateway.domain.updates.webhook_endpoints import WebhookEventKind
from gateway.kinds.deliveries import SINK, WEBHOOK_ENDPOINT
from gateway.store import jobs
from gateway.store.database.connection import connect_owner
from gateway.store.jobs import Job
from gateway.store.notifications import deliveries as stored_deliveries
from tests.integration.catalog.conftest import BY, Changes
from tests.integration.store.samples import make_client
from tests.support.documents import pets
from tests.support.replicas import until
from tests.support.servers import TestDatabase, fetch_value

WAITING = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
LATER = timedelta(minutes=5)
IN_A_DAY = timedelta(days=1, minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """The transaction of a job and that of a change; `first` is the first that waits for the job's row."""

    first: Callable[[], Awaitable[object]]
    second: Callable[[], Awaitable[object]]


async def _job(changes: Changes) -> Job:
    """The only job of the tenant."""
    async with changes.catalog.store.lookup() as db:
        [job] = await jobs.page(db, until=datetime.now(UTC) + 2 * IN_A_DAY, limit=2, of_each=2)
    return job


async def _webhook_endpoint(changes: Changes) -> Pair:
    tenant, catalog = changes.tenant.id, changes.catalog
    new = WEBHOOK_ENDPOINT.make("ops", {"url": f"{changes.upstream.url}/hook"})
    await ENDPOINTS.create(tenant, catalog, new, by=BY)
    await deliveries.test_endpoint(tenant, catalog, "ops", by=BY)
    job = await _job(changes)
    return Pair(
        first=lambda: deliveries.lease_deliveries(catalog, job),
        second=lambda: ENDPOINTS.remove(tenant, catalog, "ops", by=BY),
    )


async def _full_queue(changes: Changes) -> Pair:
    """The second event of a transaction finds the queue full, and leaves a notice at the endpoint."""
    tenant, catalog = changes.tenant.id, changes.catalog
    pair = await _webhook_endpoint(changes)

    async def enqueue_two() -> None:
        async with catalog.store.transaction(tenant) as db:
            assert await stored_deliveries.enqueue(tenant, db, WebhookEventKind.APPROVAL_EXPIRED, {}) == 1
            assert await stored_deliveries.enqueue(tenant, db, WebhookEventKind.APPROVAL_EXPIRED, {}) == 0

    return Pair(first=enqueue_two, second=pair.first)


async def _watch(changes: Changes) -> Pair:
    tenant, catalog, now = changes.tenant.id, changes.catalog, datetime.now(UTC)
    watch = Watch(
        id=WatchId(mint("wat")),
        uri="note://one",
        url="https://notes.example",
        interval_s=60,
        credential=None,
        version=1,
        created_at=now,
        updated_at=now,
    )
    async with catalog.store.transaction(tenant) as db:
        await WATCHES.rows.insert(tenant, db, watch)
        await jobs.schedule(tenant, db, Job(tenant=tenant, id=watch.id, kind=watches.KIND, due_at=now))
    poll = await watches.begin_poll(catalog, await _job(changes), until=now + LATER)
    assert poll is not None
    return Pair(
        first=lambda: watches.end_poll(catalog, poll, Sighting(), again_at=now + 2 * LATER),
        second=lambda: WATCHES.remove(tenant, catalog, watch.id, by=BY),
    )


async def _audit_sink(changes: Changes) -> Pair:
    tenant, catalog = changes.tenant.id, changes.catalog
    new = SINK.make("siem", {"kind": SinkKind.SYSLOG, "target": "tcp://127.0.0.1:6514", "whole": True})
    await SINKS.create(tenant, catalog, new, by=BY)
    delivery = await audit_sinks.begin_delivery(catalog, await _job(changes), lease=LATER)
    assert delivery is not None
    return Pair(
        first=lambda: audit_sinks.note_delivered(catalog, delivery, [], lease=2 * LATER),
        second=lambda: SINKS.remove(tenant, catalog, "siem", by=BY),
    )


async def _source(changes: Changes) -> Pair:
    tenant, catalog = changes.tenant.id, changes.catalog
    changes.upstream.body = orjson.dumps(pets("https://pets.example"))
    draft = SourceDraft(name="pets", url=f"{changes.upstream.url}/openapi.json", refresh_interval_s=3600)
    await imports.import_source(tenant, catalog, draft, by=BY)
    job = await _job(changes)
    return Pair(
        first=lambda: refreshes.begin_refresh(catalog, job),
        second=lambda: refreshes.request_refreshes(tenant, catalog, {"/sources/0": "pets"}),
    )


async def _idempotency_key(changes: Changes) -> Pair:
    tenant, catalog = changes.tenant.id, changes.catalog

    async def reserve(key: str) -> None:
        await idempotency.reserve(tenant, catalog, KeyedRequest(caller=Operator(), key=key, parts=[b"POST"]))

    await reserve("expired")
    async with catalog.store.transaction(tenant) as db:
        await db.exec_driver_sql("update idempotency_records set expires_at = now()")
    job = await _job(changes)
    return Pair(first=lambda: idempotency.clean_up(catalog, job), second=lambda: reserve("new"))


async def _registered_client(changes: Changes) -> Pair:
    """The limit of clients is reached, so that a registration removes what the job removes."""
    tenant, catalog, now = changes.tenant.id, changes.catalog, datetime.now(UTC)
    old = replace(make_client("old"), created_at=now - 2 * sign_ins.UNUSED)
    await oauth_clients.enter_client(tenant, catalog, old)
    job = await _job(changes)
    return Pair(
        first=lambda: sign_ins.clean_up(catalog, job),
        second=lambda: oauth_clients.enter_client(tenant, catalog, replace(make_client("new"), created_at=now)),
    )


PAIRS: Mapping[str, Callable[[Changes], Awaitable[Pair]]] = {
    "webhook endpoint": _webhook_endpoint,
    "full queue of deliveries": _full_queue,
    "watch": _watch,
    "audit sink": _audit_sink,
    "source": _source,
    "idempotency key": _idempotency_key,
    "registered client": _registered_client,
}


@pytest.mark.parametrize("make", PAIRS.values(), ids=PAIRS.keys())
async def test_a_job_and_a_change_of_its_object_wait_for_one_another_in_one_order(
    changes: Changes,
    database: TestDatabase,
    monkeypatch: pytest.MonkeyPatch,
    make: Callable[[Changes], Awaitable[Pair]],
) -> None:
    """Ours: PostgreSQL refuses neither as a deadlock, which a person would see as status 503 (SRV-4)."""
    monkeypatch.setattr(oauth_clients, "MAX_DYNAMIC_CLIENTS", 1)
    monkeypatch.setattr(stored_deliveries, "MAX_QUEUED", 2)
    pair = await make(changes)
    owner = await connect_owner(database.superuser_url)
    try:

        async def wait_for(count: int) -> None:
            async def is_so() -> bool:
                return await fetch_value(database.superuser_url, WAITING) == count

            await until(is_so)

        async with asyncio.TaskGroup() as group:
            await owner.execute("begin; select from due_work for update")
            group.create_task(_awaited(pair.first))
            await wait_for(1)
            group.create_task(_awaited(pair.second))
            await wait_for(2)
            await owner.execute("commit")
    finally:
        await owner.close()


async def _awaited(begin: Callable[[], Awaitable[object]]) -> None:
    await begin()
