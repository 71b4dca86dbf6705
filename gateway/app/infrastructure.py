"""Infrastructure of a replica: PostgreSQL, Redis, the upstream client, and the cipher of stored secrets."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway.app.secret_stores import build_secret_stores
from gateway.app.secrets import GatewayKeys, RereadSecrets
from gateway.app.tracing import build_traces
from gateway.catalog.identity.secret_keys.start_check import SecretKeyCheck
from gateway.domain.fairness.queue import FairQueue
from gateway.domain.fairness.share import FairSlotPool
from gateway.domain.fairness.task_supervisor import TaskSupervisor
from gateway.domain.tenancy.configured_secret import ConfiguredSecret
from gateway.redis.audit_heads import RedisHeadStore
from gateway.redis.audit_spool import AuditSpool
from gateway.redis.event_bus import EventBus
from gateway.settings import Settings
from gateway.store.audit.anchors import ANCHOR_PURPOSE
from gateway.store.audit.head_file import FileHeads
from gateway.store.audit.head_signer import AuditSigner
from gateway.store.audit.outside_heads import HEADS_PURPOSE, HeadStore, OutsideHeads
from gateway.store.audit.refusals import RefusalTally
from gateway.store.audit.spool import SpoolDrain
from gateway.store.audit.unsigned_tenants import UnsignedTenants
from gateway.store.audit.writer import AuditWriter
from gateway.store.database.circuit_breaker import DatabaseBreaker
from gateway.store.encryption import EnvelopeCipher
from gateway.store.engine import Store
from gateway.telemetry.traces import Traces
from gateway.upstream.audit_heads_endpoint import EndpointHeads
from gateway.upstream.auth.key_sets import KeySets
from gateway.upstream.client import UpstreamClient
from gateway.upstream.deadlines import Timeouts
from gateway.upstream.secret_stores.stores import SecretStores


@dataclass(frozen=True, slots=True, kw_only=True)
class Infrastructure:
    """The components of the infrastructure, most of which are connected to other systems."""

    store: Store
    cipher: EnvelopeCipher
    bus: EventBus
    tasks: TaskSupervisor
    """Background work that outlives a request; it ends before the upstream client and the bus are closed."""
    upstream: UpstreamClient
    key_sets: KeySets
    secret_stores: SecretStores
    audit: AuditWriter
    refusals: RefusalTally
    drain: SpoolDrain
    unsigned_tenants: UnsignedTenants
    signer: AuditSigner
    heads: OutsideHeads
    traces: Traces | None = None
    """The source of exported spans; None if spans are not exported."""

    @property
    def parts(self) -> Sequence[AbstractAsyncContextManager[object]]:
        """The components to open, in this order."""
        traces = () if self.traces is None else (self.traces,)
        return (
            *traces,
            self.store,
            SecretKeyCheck(self.store, self.cipher),
            self.bus,
            self.upstream,
            self.tasks,
            self.secret_stores.opened(),
            self.signer,
            self.audit,
            self.refusals,
            self.drain,
        )

    @property
    def pools(self) -> tuple[FairSlotPool, FairQueue[Any], FairSlotPool]:
        """Bounded pools of this replica: database connections, the queue of audit entries, and large bodies."""
        return self.store.slot_pool, self.audit.queue, self.upstream.room.slot_pool

    async def check(self) -> None:
        """Check Redis before the start; PostgreSQL was checked with the secret keys.

        Then load the end of the period in which state without a MAC is accepted from Redis.

        Raises:
            DatabaseUnavailable, RedisUnavailable: PostgreSQL or Redis cannot be used.
        """
        await self.bus.check()
        await self.bus.check_events()
        self.bus.accept_unsealed(await self.store.unsealed_until())


def build_infrastructure(settings: Settings, keys: GatewayKeys, secrets: RereadSecrets) -> Infrastructure:
    """Build the infrastructure of a replica; no part is opened."""
    database_url, redis_url = secrets.database_url, secrets.redis_url
    cipher = EnvelopeCipher(keys.secret_keys)
    traces = build_traces(settings)
    secret, *older = cipher.derive_all("bus")
    bus, chain_key = EventBus(redis_url, secret=secret, older=older), cipher.derive("audit")
    secret, *older = cipher.derive_all("audit overflow")
    overflow, silence = AuditSpool(bus, secret=secret, older=older), DatabaseBreaker()
    store, moved = Store(database_url, pool_size=settings.database_pool, silence=silence), UnsignedTenants()
    upstream = UpstreamClient(
        egress_allow=settings.egress_allow, timeouts=Timeouts(max_s=settings.upstream_timeout_max_s), traces=traces
    )
    heads = OutsideHeads(
        _head_stores(settings, bus, upstream, secrets.audit_heads_token), keys=cipher.derive_kept(HEADS_PURPOSE)
    )
    signing, anchors = cipher.derive("audit heads"), cipher.derive_kept(ANCHOR_PURPOSE)
    audit = AuditWriter(database_url, chain_key=chain_key, overflow=overflow, silence=silence, moved=moved)
    return Infrastructure(
        store=store,
        cipher=cipher,
        bus=bus,
        tasks=TaskSupervisor(),
        upstream=upstream,
        key_sets=KeySets(upstream),
        secret_stores=build_secret_stores(settings),
        audit=audit,
        refusals=RefusalTally(audit.write),
        drain=SpoolDrain(database_url, overflow, store=store, chain_key=chain_key, moved=moved),
        unsigned_tenants=moved,
        signer=AuditSigner(store, moved, key=signing, anchor_keys=anchors, outside=heads),
        heads=heads,
        traces=traces,
    )


def _head_stores(
    settings: Settings, bus: EventBus, upstream: UpstreamClient, token: ConfiguredSecret | None
) -> Sequence[HeadStore]:
    """Redis, and the stores that the operator has configured: files and https URLs."""
    named: list[HeadStore] = [
        FileHeads(Path(target)) if target.startswith("/") else EndpointHeads(upstream, target, token=token)
        for target in settings.audit_heads
    ]
    return [RedisHeadStore(bus), *named]
