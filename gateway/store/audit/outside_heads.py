"""Heads of audit trails in stores outside the database: their MACs, delivery and reading.

A head names the newest signature of a tenant's audit trail. Signatures form one chain per tenant, so one head covers
all earlier signatures. The signer delivers heads after each round, never in a call. Each store receives the newest head
of each tenant, with a deadline of 5 s per batch. A failed delivery is repeated in the next round.
"""

import hmac
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple, Protocol

import anyio
import msgspec
import structlog

from gateway.domain.audit import HeadsCompared, HeadsState
from gateway.domain.fairness.bounded_cache import BoundedCache
from gateway.domain.identifiers import TenantId
from gateway.errors import GatewayError
from gateway.store.audit.anchors import TrailHead
from gateway.store.audit.hash_chain import now_us
from gateway.store.audit.limits import HEADS_S, MAX_QUEUED_HEADS, PROMPT_HEADS_S

log = structlog.get_logger(__name__)

HEADS_PURPOSE = "audit heads outside"
"""Purpose for which the MAC key of heads is derived."""

_HEADS_PER_BATCH = 500
_DELIVERY_ERRORS = (GatewayError, OSError, TimeoutError)


class HeadStore(Protocol):
    """A store outside the database that keeps sealed heads."""

    @property
    def name(self) -> str:
        """Name of the store in results and logs."""
        ...

    @property
    def is_memory(self) -> bool:
        """True if a starting signer may continue from the heads in this store."""
        ...

    async def put(self, heads: Mapping[TenantId, bytes]) -> None:
        """Store these heads; raises GatewayError or OSError."""
        ...

    async def get(self, tenant: TenantId) -> Sequence[bytes]:
        """The stored heads of the tenant; raises GatewayError or OSError."""
        ...


class FoundHeads(NamedTuple):
    """The heads of one tenant in one store."""

    store: str
    heads: Sequence[TrailHead] = ()
    refused: int = 0
    is_reached: bool = True


class _SealedHead(msgspec.Struct, frozen=True):
    """A head as stored, in JSON."""

    tenant: str
    number: int
    head: str
    at: str
    mac: str


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_SealedHead).decode
_pack = msgspec.msgpack.Encoder().encode


def seal_head(key: bytes, tenant: TenantId, trail: TrailHead, *, at_us: int) -> bytes:
    """A head with its MAC, as one line of JSON."""
    at = datetime.fromtimestamp(at_us / 1_000_000, UTC).isoformat(timespec="seconds")
    head = trail.head.hex()
    mac = _mac(key, tenant, trail.number, head, at=at)
    return _encode(_SealedHead(tenant=tenant, number=trail.number, head=head, at=at, mac=mac))


def open_head(keys: Sequence[bytes], tenant: TenantId, sealed: bytes) -> TrailHead | None:
    """Decode and verify a head; None unless one of these keys made its MAC for this tenant."""
    try:
        found = _decode(sealed)
        if not found.mac.isascii():
            return None
        # guard: audit-heads-of-their-tenant
        macs = (_mac(key, tenant, found.number, found.head, at=found.at) for key in keys)
        if not any(hmac.compare_digest(mac, found.mac) for mac in macs):  # guard: audit-heads-sealed
            return None
        return TrailHead(found.number, bytes.fromhex(found.head))
    except (msgspec.MsgspecError, ValueError, OverflowError):
        return None


class OutsideHeads:
    """The head stores of one gateway, and the queue of heads for each store."""

    def __init__(self, stores: Sequence[HeadStore], *, keys: Sequence[bytes]) -> None:
        self._stores = tuple(stores)
        self._keys = keys
        self._queued = {store.name: BoundedCache[TenantId, bytes](MAX_QUEUED_HEADS) for store in stores}
        self.failures: dict[str, int] = {store.name: 0 for store in stores}
        """Number of failed deliveries, by store."""

    def note(self, tenant: TenantId, trail: TrailHead) -> None:
        """Queue this head for the next round, in place of an older head of the tenant.

        Beyond 10,000 waiting tenants, the tenant that was queued first is dropped.
        """
        sealed = seal_head(self._keys[0], tenant, trail, at_us=now_us())
        for waiting in self._queued.values():
            waiting[tenant] = sealed

    async def deliver(self) -> None:
        """Send the waiting heads to every store; a failed delivery is logged and counted, not raised."""
        async with anyio.create_task_group() as tasks:
            for store in self._stores:
                tasks.start_soon(self._deliver_to, store)

    async def recall(self, tenant: TenantId) -> TrailHead | None:
        """The newest valid head in the stores with `is_memory` that respond in time; None if there is none."""
        newest: TrailHead | None = None
        for store in self._stores:
            if store.is_memory:
                found = await self._read(store, tenant, within_s=PROMPT_HEADS_S)
                for trail in found.heads:
                    newest = trail if newest is None or trail.number > newest.number else newest
        return newest

    async def read(self, tenant: TenantId) -> Sequence[FoundHeads]:
        """The valid heads of the tenant in every store, and the number of invalid ones."""
        found: dict[str, FoundHeads] = {}

        async def read_one(store: HeadStore) -> None:
            found[store.name] = await self._read(store, tenant, within_s=HEADS_S)

        async with anyio.create_task_group() as tasks:
            for store in self._stores:
                tasks.start_soon(read_one, store)
        return [found[store.name] for store in self._stores]

    async def _deliver_to(self, store: HeadStore) -> None:
        waiting = self._queued[store.name]
        while waiting:
            batch = dict(list(waiting.items())[:_HEADS_PER_BATCH])
            try:
                with anyio.fail_after(HEADS_S):
                    await store.put(batch)
            except _DELIVERY_ERRORS as error:
                self.failures[store.name] += 1
                log.warning("audit_heads_not_delivered", store=store.name, heads=len(waiting), reason=_reason(error))
                return
            for tenant, sealed in batch.items():
                if waiting.get(tenant) is sealed:  # a newer head may have been queued during the delivery
                    del waiting[tenant]

    async def _read(self, store: HeadStore, tenant: TenantId, *, within_s: float) -> FoundHeads:
        try:
            with anyio.fail_after(within_s):
                kept = await store.get(tenant)
        except _DELIVERY_ERRORS as error:
            log.warning("audit_heads_not_read", store=store.name, reason=_reason(error))
            return FoundHeads(store.name, is_reached=False)
        opened = [open_head(self._keys, tenant, sealed) for sealed in kept]
        heads = [trail for trail in opened if trail is not None]
        if len(heads) < len(kept):
            log.error("audit_heads_refused", store=store.name, tenant_id=tenant, heads=len(kept) - len(heads))
        return FoundHeads(store.name, heads, refused=len(kept) - len(heads))


def compare_heads(found: FoundHeads, signed: Mapping[int, bytes], last: int) -> HeadsCompared:
    """Compare the heads of one store with the signatures in the database, whose last number is `last`."""
    if not found.is_reached:
        return HeadsCompared(store=found.store, state=HeadsState.UNREACHABLE)
    if not found.heads:
        state = HeadsState.REFUSED if found.refused else HeadsState.EMPTY
        return HeadsCompared(store=found.store, state=state, refused=found.refused)
    state, number = HeadsState.MATCHED, 0
    for trail in sorted(found.heads):
        number = trail.number
        if number > 0 and signed.get(number) != trail.head:  # guard: audit-heads-compared
            state = HeadsState.MISSING if number > last else HeadsState.CHANGED
            break
    count = len(found.heads)
    return HeadsCompared(store=found.store, state=state, number=number, compared=count, refused=found.refused)


def _mac(key: bytes, tenant: str, number: int, head: str, *, at: str) -> str:
    return hmac.digest(key, _pack((tenant, number, head, at)), "sha256").hex()


def _reason(error: Exception) -> str:
    return error.message if isinstance(error, GatewayError) else type(error).__name__
