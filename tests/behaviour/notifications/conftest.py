"""A gateway, receivers of outbound webhooks, and a way to raise events without an approval."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any

import asyncpg
import pytest

from gateway.domain.identifiers import TenantId
from gateway.domain.updates.webhook_endpoints import WebhookEventKind
from gateway.store.engine import Store
from gateway.store.notifications.deliveries import enqueue
from tests.support.gateway import RunningGateway
from tests.support.primitives import add
from tests.support.replicas import until
from tests.support.servers import execute
from tests.support.stand import Stand, database, gateway, own_stand, redis_url, stand, upstream
from tests.support.stand import package_stand as common_stand
from tests.support.upstream import RecordingUpstream

__all__ = ["common_stand", "database", "gateway", "own_stand", "redis_url", "stand", "upstream"]

KINDS = [str(kind) for kind in WebhookEventKind]
REQUESTED = "approval.requested"


@dataclass(frozen=True, slots=True)
class Outbox:
    """A tenant whose events are sent to the first upstream of the `Stand`."""

    stand: Stand
    store: Store
    slug: str
    tenant: TenantId

    @property
    def gateway(self) -> RunningGateway:
        return self.stand.gateway

    @property
    def receiver(self) -> RecordingUpstream:
        return self.stand.upstreams[0]

    @property
    def path(self) -> str:
        return f"/tenants/{self.slug}/webhook-endpoints"

    async def endpoint(self, name: str = "chat", **more: Any) -> dict[str, Any]:
        """A new endpoint with its secret."""
        body = {"name": name, "url": f"{self.receiver.url}/{name}", "kinds": KINDS, **more}
        return await add(self.gateway, self.slug, "webhook-endpoints", body)

    async def show(self, name: str = "chat") -> dict[str, Any]:
        """An endpoint as it is now."""
        found: dict[str, Any] = (await self.gateway.admin.get(f"{self.path}/{name}")).raise_for_status().json()
        return {**found, **found["status"]}

    async def raise_event(self, kind: str = REQUESTED, **payload: object) -> int:
        """One event, as the transaction of an approval raises it."""
        async with self.store.transaction(self.tenant) as db:
            return await enqueue(self.tenant, db, kind, payload or {"id": "apr_1", "tool": "delete_pet"})

    async def log(self, name: str = "chat") -> list[dict[str, Any]]:
        """The deliveries of an endpoint, the newest first."""
        answer = (await self.gateway.admin.get(f"{self.path}/{name}/deliveries")).raise_for_status()
        items: list[dict[str, Any]] = answer.json()["items"]
        return items

    async def settled(self, *states: str, name: str = "chat", attempts: int = 1) -> list[dict[str, Any]]:
        """The log once its deliveries have these states, the newest first, after so many attempts at least."""
        found: list[dict[str, Any]] = []

        async def is_so() -> bool:
            found[:] = await self.log(name)
            return [one["state"] for one in found] == list(states) and all(one["attempts"] >= attempts for one in found)

        await until(is_so, seconds=30)
        return found

    async def pass_time(self, **columns: str) -> None:
        """Let an interval pass for columns of the tenant's endpoints and deliveries, such as `due_at='1 h'`."""
        of_endpoints = {"held_until", "failing_since", "retires_at"}
        for column, interval in columns.items():
            table = "webhook_endpoints" if column in of_endpoints else "webhook_deliveries"
            moved = f"update {table} set {column} = {column} - interval '{interval}' where tenant_id = '{self.tenant}'"
            for tries_left in (2, 1, 0):
                try:
                    await execute(self.stand.database.superuser_url, moved)
                    break
                except asyncpg.DeadlockDetectedError:  # with the job that updates the same rows in another order
                    if not tries_left:
                        raise

    async def look(self) -> None:
        """Make the tenant's jobs due."""
        due = f"update due_work set due_at = now() where tenant_id = '{self.tenant}'"
        await execute(self.stand.database.superuser_url, due)

    async def retry(self) -> None:
        """Let the pauses of the deliveries and of the endpoints pass."""
        await self.pass_time(due_at="20 h", held_until="20 h")
        await self.look()

    async def fill(self, name: str, number: int, *, due: str = "now()", prefix: str = "msg_") -> None:
        """So many pending deliveries of an endpoint, written by hand, and the job for them."""
        endpoint = (await self.show(name))["id"]
        columns = "tenant_id, id, endpoint_id, kind, payload, state, attempts, due_at, expires_at, created_at"
        values = f"'{self.tenant}', '{prefix}' || n, '{endpoint}', '{REQUESTED}', '{{}}', 'pending', 0, {due}"
        many = f"select {values}, now() + interval '1 day', now() from generate_series(1, {number}) n"
        await execute(self.stand.database.superuser_url, f"insert into webhook_deliveries ({columns}) {many}")
        job = f"'{self.tenant}', '{endpoint}', 'webhook-endpoint', {due}"
        scheduled = f"insert into due_work (tenant_id, id, kind, due_at) values ({job})"
        await execute(self.stand.database.superuser_url, scheduled)


async def make_outbox(stand: Stand, store: Store, slug: str) -> Outbox:
    """A new tenant with an empty outbox."""
    await stand.gateway.create_tenant(slug)
    tenant = (await stand.gateway.admin.get(f"/tenants/{slug}")).json()["id"]
    return Outbox(stand, store, slug, TenantId(tenant))


@pytest.fixture(scope="package")
async def events(common_stand: Stand) -> AsyncGenerator[Store]:
    """The store in which tests raise events."""
    async with Store(common_stand.database.app_url) as store:
        yield store


@pytest.fixture
async def outbox(stand: Stand, events: Store) -> Outbox:
    """A tenant of this test alone."""
    return await make_outbox(stand, events, "acme")
