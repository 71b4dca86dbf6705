"""A tenant with an audit trail that replicas write one after the other, for attacks on the trail."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from gateway.catalog import tenants
from gateway.catalog.audit import TrailVerifier
from gateway.catalog.kinds.tenants import TENANTS
from gateway.catalog.transaction import Author, CatalogContext
from gateway.domain.audit import AuditKind, AuditTrail, CallRecord
from gateway.domain.events import Event
from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.principals import Operator
from gateway.redis.audit_heads import RedisHeadStore
from gateway.redis.event_bus import EventBus
from gateway.store.audit.anchors import ANCHOR_PURPOSE
from gateway.store.audit.hash_chain import CATALOG
from gateway.store.audit.head_signer import AuditSigner
from gateway.store.audit.outside_heads import HEADS_PURPOSE, HeadStore, OutsideHeads
from gateway.store.audit.unsigned_tenants import UnsignedTenants
from gateway.store.audit.writer import AuditWriter
from gateway.store.encryption import EnvelopeCipher
from gateway.store.engine import Store
from gateway.upstream.client import UpstreamClient
from tests.support.servers import TestDatabase, TestServers, execute

BY = Author(caller=Operator(), correlation_id="test")
SECRET = "secret-key-of-the-tests-0123456789abc"


async def _publish(_: Event) -> None:
    """No listener."""


@dataclass(frozen=True, slots=True)
class Replica:
    """One process of the gateway, as far as it writes trails: what it remembers ends with it."""

    catalog: CatalogContext
    heads: OutsideHeads
    writer: AuditWriter
    signer: AuditSigner
    moved: UnsignedTenants
    tenant: TenantId

    async def change(self, name: str = "Acme") -> None:
        """One change of the tenant."""
        await TENANTS.change(self.tenant, self.catalog, self.tenant, lambda one: replace(one, name=name), by=BY)
        self.moved.note(self.tenant, CATALOG)

    async def call(self, count: int = 1) -> None:
        """Calls of the tenant, recorded on one connection."""
        for number in range(count):
            await self.writer.write(_record(self.tenant, number))

    async def sign(self) -> None:
        """One round of the signer."""
        await self.signer.sign()


@dataclass(frozen=True, slots=True)
class TrailWorld:
    """The databases behind a trail, and the tenant whose it is."""

    database: TestDatabase
    store: Store
    bus: EventBus
    upstream: UpstreamClient
    tenant: TenantId
    outside: Sequence[HeadStore] = ()

    @asynccontextmanager
    async def replica(self) -> AsyncGenerator[Replica]:
        """A replica that starts, and remembers nothing of the one before."""
        moved, sealer = UnsignedTenants(), EnvelopeCipher([SECRET])
        catalog, heads = make_catalog(self.store, self.upstream), self.heads()
        signer = AuditSigner(
            self.store,
            moved,
            key=sealer.derive("audit heads"),
            anchor_keys=sealer.derive_all(ANCHOR_PURPOSE),
            outside=heads,
        )
        async with AuditWriter(self.database.app_url, chain_key=catalog.chain_key, moved=moved) as writer:
            yield Replica(catalog, heads, writer, signer, moved, self.tenant)

    async def verify(self) -> AuditTrail:
        """Result of `gateway audit verify`."""
        return await self.verify_with(self.heads())

    async def verify_with(self, heads: OutsideHeads) -> AuditTrail:
        """The same, by a replica with these heads."""
        return await TrailVerifier(self.store, EnvelopeCipher([SECRET]), heads).verify(self.tenant)

    def heads(self) -> OutsideHeads:
        """The outside stores, as a replica that starts has them."""
        return OutsideHeads(self.outside, keys=EnvelopeCipher([SECRET]).derive_all(HEADS_PURPOSE))

    async def edit(self, *statements: str) -> None:
        """Write as the owner of the server, in one transaction; `{t}` is the condition on the tenant's rows."""
        await execute(self.database.superuser_url, "; ".join(statements).replace("{t}", f"tenant_id = '{self.tenant}'"))


@dataclass(frozen=True, slots=True)
class History:
    """A trail that replicas left, and the stores over which every test of a module finds it as it was."""

    servers: TestServers
    world: TrailWorld
    kept_redis: str

    def restored(self, *, has_redis: bool = True) -> TrailWorld:
        """The world of one test; no other test sees what it changes."""
        self.servers.copied_redis(self.kept_redis)
        self.servers.restore_rows(self.world.database)
        return self.world if has_redis else without(self.world, "redis")


@asynccontextmanager
async def shared_history(
    servers: TestServers,
    make: Callable[[TestDatabase, str], Awaitable[TenantId]],
    *,
    stores: Sequence[HeadStore] = (),
) -> AsyncGenerator[History]:
    """The history that `make` writes into a database and a Redis; its world has these stores of heads too."""
    with servers.database() as database, servers.held_redis() as redis_url:
        tenant = await make(database, redis_url)
        servers.save_rows(database)
        async with trail_world(database, servers.copied_redis(redis_url), stores=stores, tenant=tenant) as world:
            yield History(servers, world, redis_url)


@asynccontextmanager
async def trail_world(
    database: TestDatabase,
    redis_url: str,
    *,
    stores: Sequence[HeadStore] = (),
    has_redis: bool = True,
    tenant: TenantId | None = None,
) -> AsyncGenerator[TrailWorld]:
    """A tenant with nothing but its creation, or one that the database has."""
    async with (
        EventBus(redis_url, secret=b"bus") as bus,
        UpstreamClient() as upstream,
        Store(database.app_url) as store,
    ):
        outside = [*([RedisHeadStore(bus)] if has_redis else []), *stores]
        if tenant is None:
            tenant = (await tenants.create_tenant(make_catalog(store, upstream), "acme", "Acme", by=BY)).id
        yield TrailWorld(database, store, bus, upstream, tenant, outside)


def make_catalog(store: Store, upstream: UpstreamClient) -> CatalogContext:
    """The verbs of the catalog over these."""
    sealer = EnvelopeCipher([SECRET])
    return CatalogContext(
        store=store,
        sealer=sealer,
        upstream=upstream,
        publish=_publish,
        chain_key=sealer.derive("audit"),
    )


def without(world: TrailWorld, *names: str) -> TrailWorld:
    """The same world without these stores of heads."""
    return replace(world, outside=[store for store in world.outside if store.name not in names])


def _record(tenant: TenantId, number: int) -> CallRecord:
    return CallRecord(
        tenant=tenant,
        kind=AuditKind.CALL,
        principal="key:key_1",
        subject="someone",
        tool=f"tool_{number}",
        outcome="ok",
        correlation_id=f"cor_{number}",
        digest=b"digest",
    )
