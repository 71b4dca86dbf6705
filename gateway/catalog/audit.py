"""The audit trail of a tenant: paging and verification."""

from collections.abc import AsyncGenerator, Sequence

from gateway.catalog.transaction import CatalogContext
from gateway.domain.audit import AuditEntry, AuditFilter, AuditTrail
from gateway.domain.fairness.share import FairSlotPool
from gateway.domain.identifiers import TenantId
from gateway.store.audit import anchors, cuts, deleted_tenants, entries, export_keys, signed_heads
from gateway.store.audit.anchors import ANCHOR_PURPOSE
from gateway.store.audit.cuts import Cut
from gateway.store.audit.hash_chain import Link
from gateway.store.audit.outside_heads import OutsideHeads, compare_heads
from gateway.store.audit.signed_heads import Signature
from gateway.store.audit.verification import TrailCheck, TrailKeys
from gateway.store.encryption import EnvelopeCipher
from gateway.store.engine import Db, Store

PART = 500
"""Rows per query. Other tasks run between two queries."""


async def page_entries(
    tenant: TenantId, catalog: CatalogContext, wanted: AuditFilter, *, after: str | None, limit: int
) -> Sequence[AuditEntry]:
    """The tenant's audit entries that match the filter, newest first; the last refusals of this replica included."""
    await catalog.settle(tenant)
    async with catalog.store.transaction(tenant) as db:
        return await entries.page(tenant, db, after=after, limit=limit, filters=wanted)


def position_of(entry: AuditEntry) -> str:
    """Cursor position of an entry: its id, because ids sort by time."""
    return entry.id


def trail_keys(sealer: EnvelopeCipher) -> TrailKeys:
    """The keys of the MACs of all audit trails."""
    derive = sealer.derive_kept
    return TrailKeys(chain=derive("audit"), signing=derive("audit heads"), anchor=derive(ANCHOR_PURPOSE))


class TrailVerifier:
    """Verifies audit trails, at most two at once, because the verification of a long trail takes minutes."""

    def __init__(self, store: Store, sealer: EnvelopeCipher, heads: OutsideHeads) -> None:
        self._store = store
        self._sealer = sealer
        self._keys = trail_keys(sealer)
        self._heads = heads
        self.slot_pool = FairSlotPool("verifications", slots=2, queue=16, timeout_s=60)

    async def verify(self, tenant: TenantId) -> AuditTrail:
        """Verify the chains, the anchor, and the heads in external stores; report the first fault of each chain.

        The external stores are read first, then the signatures in one transaction, then the entries. A signature is
        written after the entries that it covers, and a head after its signature. So each entry that one of these covers
        should be present when the entries are read. Entries written during the verification are verified too.

        Raises:
            LimitExceeded: too many audit trails are being verified.
        """
        async with self.slot_pool.hold(tenant):
            outside = await self._heads.read(tenant)
            head_numbers = {trail.number for found in outside for trail in found.heads}
            async with self._store.reading(tenant) as db:
                revision = await deleted_tenants.revision_of(tenant, db)
                anchor = await anchors.find(tenant, db)
                references = await anchors.references(tenant, db)
                signers = await export_keys.verify_keys(tenant, db, self._sealer)
                check = TrailCheck(self._keys, references=references, head_numbers=head_numbers, cut_keys=signers)
                await _follow_signatures(tenant, db, check)
            async for removed, links in read_trail(tenant, self._store):
                check.follow_cuts(removed)
                check.follow(links)
            found_anchor = check.anchor(anchor)
            compared = [compare_heads(found, check.signed, check.last_signature) for found in outside]
            return AuditTrail(chains=check.chains(revision), anchor=found_anchor, stores=compared)


async def _follow_signatures(tenant: TenantId, db: Db, check: TrailCheck) -> None:
    last: Signature | None = None
    while True:
        part = await signed_heads.signatures(tenant, db, after=last, limit=PART)
        check.follow_signatures(part)
        if len(part) < PART:
            return
        last = part[-1]


async def read_trail(tenant: TenantId, store: Store) -> AsyncGenerator[tuple[Sequence[Cut], Sequence[Link]]]:
    """Yield the cut records and the entries in pages. Each page is read in a short transaction of its own.

    A page of entries is read in one database snapshot with the newest cut records. So each gap that a concurrent
    cut leaves has its record.
    """
    last: Link | None = None
    cut: Cut | None = None
    links: Sequence[Link] = ()
    while True:
        async with store.reading(tenant) as db:
            removed = await cuts.page(tenant, db, after=cut, limit=PART)
            links = await entries.links(tenant, db, after=last, limit=PART) if len(removed) < PART else ()
        yield removed, links
        if len(links) < PART and len(removed) < PART:
            return
        cut, last = removed[-1] if removed else cut, links[-1] if links else last
