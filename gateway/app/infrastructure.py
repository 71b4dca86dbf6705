"""What leads out of the process: PostgreSQL, Redis and upstreams, and the sealer that keeps secrets closed in them."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path

from gateway.app.secrets import Keys
from gateway.app.tracing import find_traces
from gateway.redis.audit_heads import RedisHeads
from gateway.redis.audit_spool import Overflow
from gateway.redis.event_bus import Bus
from gateway.settings import Settings
from gateway.store.audit.anchors import ANCHOR_PURPOSE
from gateway.store.audit.head_file import FileHeads
from gateway.store.audit.head_signer import AuditSigner
from gateway.store.audit.outside_heads import HEADS_PURPOSE, HeadStore, OutsideHeads
from gateway.store.audit.spool import AuditDrain
from gateway.store.audit.unsigned_tenants import Moved
from gateway.store.audit.writer import AuditWriter
from gateway.store.database.circuit_breaker import Silence
from gateway.store.encryption import Sealer
from gateway.store.engine import Store
from gateway.telemetry.traces import Traces
from gateway.upstream.audit_heads_endpoint import EndpointHeads
from gateway.upstream.client import Upstream


@dataclass(frozen=True, slots=True, kw_only=True)
class Doors:
    """The parts that hold connections to something else."""

    store: Store
    sealer: Sealer
    bus: Bus
    upstream: Upstream
    audit: AuditWriter
    drain: AuditDrain
    moved: Moved
    signer: AuditSigner
    heads: OutsideHeads
    traces: Traces | None = None
    """Where spans are exported."""

    @property
    def parts(self) -> Sequence[AbstractAsyncContextManager[object]]:
        """What is opened, in this order."""
        traces = () if self.traces is None else (self.traces,)
        return (*traces, self.store, self.bus, self.upstream, self.signer, self.audit, self.drain)

    async def check(self) -> None:
        """Refuse to go on without a database and a Redis that can be used; learn what Redis may hold unsealed.

        Raises:
            DatabaseUnavailable, RedisUnavailable: one of them cannot.
        """
        await self.store.check()
        await self.bus.check()
        self.bus.accept_unsealed(await self.store.unsealed_until())


def build_doors(settings: Settings, keys: Keys, *, database_url: str, redis_url: str) -> Doors:
    """The doors of a replica, all closed yet."""
    sealer = Sealer(keys.secret_keys)
    traces = find_traces(settings)
    secret, *older = sealer.derive_all("bus")
    bus, chain_key = Bus(redis_url, secret=secret, older=older), sealer.derive("audit")
    secret, *older = sealer.derive_all("audit overflow")
    overflow, silence = Overflow(bus, secret=secret, older=older), Silence()
    store, moved = Store(database_url, pool_size=settings.database_pool, silence=silence), Moved()
    upstream = Upstream(egress_allow=settings.egress_allow, traces=traces)
    heads = OutsideHeads(_head_stores(settings, bus, upstream), keys=sealer.derive_all(HEADS_PURPOSE))
    signing, anchors = sealer.derive("audit heads"), sealer.derive_all(ANCHOR_PURPOSE)
    return Doors(
        store=store,
        sealer=sealer,
        bus=bus,
        upstream=upstream,
        audit=AuditWriter(database_url, chain_key=chain_key, overflow=overflow, silence=silence, moved=moved),
        drain=AuditDrain(database_url, overflow, chain_key=chain_key, moved=moved),
        moved=moved,
        signer=AuditSigner(store, moved, key=signing, anchor_keys=anchors, outside=heads),
        heads=heads,
        traces=traces,
    )


def _head_stores(settings: Settings, bus: Bus, upstream: Upstream) -> Sequence[HeadStore]:
    """Redis, and what the operator has named: files and https URLs."""
    secret = settings.audit_heads_token
    token = None if secret is None else secret.get_secret_value()
    named: list[HeadStore] = [
        FileHeads(Path(place)) if place.startswith("/") else EndpointHeads(upstream, place, token=token)
        for place in settings.audit_heads
    ]
    return [RedisHeads(bus), *named]
