"""Exports of audit trails: signed lines that can be verified without the gateway and without its secret keys.

A whole trail is verified during the export, as by `audit verify`, and the signature covers the result. With a filter,
each exported entry is verified by its own MAC; the signature then confirms that no other entry matched.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime

import anyio
import msgspec

from gateway.catalog.audit import PART, read_trail, trail_keys
from gateway.catalog.limits import EXPORT_KEEP_ALIVE_S, EXPORT_POLL_S
from gateway.domain.audit import Anchor, AuditFilter, Chain
from gateway.domain.fairness.share import FairSlotPool
from gateway.domain.identifiers import TenantId
from gateway.store.audit import anchors, cuts, deleted_tenants, entries, export_keys, places, signed_heads
from gateway.store.audit.anchors import StoredAnchor
from gateway.store.audit.cuts import Cut, cut_line
from gateway.store.audit.export_lines import FORMAT, ExportKey, SealedLines, VerifyKey, entry_line, head_line, moment
from gateway.store.audit.hash_chain import Link, now_us
from gateway.store.audit.signed_heads import Signature
from gateway.store.audit.verification import TrailCheck, is_authentic
from gateway.store.encryption import EnvelopeCipher
from gateway.store.engine import Store

Line = dict[str, object]

_NO_FILTER = AuditFilter()

_encode = msgspec.json.Encoder().encode


class TrailExporter:
    """Exports audit trails, at most four at once; each export keeps at most 500 entries in memory."""

    def __init__(self, store: Store, sealer: EnvelopeCipher) -> None:
        self._store = store
        self._sealer = sealer
        self._keys = trail_keys(sealer)
        self.slot_pool = FairSlotPool("exports of audit trails", slots=4, queue=16, timeout_s=30)
        self.followers = FairSlotPool("followers of audit trails", slots=32, queue=0)

    @property
    def pools(self) -> tuple[FairSlotPool, FairSlotPool]:
        """The slot pools of exports and of followers, for metrics."""
        return self.slot_pool, self.followers

    async def public_keys(self, tenant: TenantId) -> Sequence[VerifyKey]:
        """The keys whose signatures are valid; the first one signs new exports."""
        async with self._store.transaction(tenant) as db:
            return await export_keys.verify_keys(tenant, db, self._sealer)

    async def export(self, tenant: TenantId, wanted: AuditFilter = _NO_FILTER) -> AsyncGenerator[bytes]:
        """Yield the export in chunks of whole lines.

        Each batch ends with a signature, so a tampered batch can be identified. Each batch is read in a separate
        transaction, so a slow reader keeps no transaction open.

        Raises:
            LimitExceeded: too many audit trails are being exported.
        """
        async with self.slot_pool.hold(tenant):
            builder = SealedLines(tenant, ExportKey.of(tenant, self._sealer)[0])
            lines = self._full_trail(tenant) if wanted == _NO_FILTER else self._filtered_trail(tenant, wanted)
            yield builder.add([_header(tenant, wanted)])
            async for part in lines:
                yield builder.add(part) + builder.seal()

    async def follow(self, tenant: TenantId, since: datetime | None, *, for_s: int) -> AsyncGenerator[bytes]:
        """Yield entries as they are committed, for `for_s` seconds; with `since`, first the entries since that time.

        The stream ends after `for_s` seconds, so that a revoked key cannot read on. The client then reconnects with the
        time of its last entry. An empty line is sent first, and after each idle period of 15 s.

        Raises:
            LimitExceeded: too many audit trails are being followed.
        """
        async with self.followers.hold(tenant):
            async with self._store.transaction(tenant) as db:
                positions = await places.ends(tenant, db)
            ends_at = anyio.current_time() + for_s
            yield b"\n"
            if since is not None:
                async for part in self._entry_batches(tenant, AuditFilter(since=since)):
                    yield _as_lines([one for one, _ in part])
                    if anyio.current_time() >= ends_at:  # guard: tail-ends-in-the-past
                        return
            idle_s = 0.0
            while True:
                is_last = anyio.current_time() >= ends_at
                async with self._store.transaction(tenant) as db:
                    links = await places.behind(tenant, db, positions, limit=PART)
                if links:
                    positions |= places.after(positions, links)
                    idle_s = 0.0
                    yield _as_lines(sorted(links, key=lambda one: one.row.id))
                if is_last:  # guard: tail-ends
                    return
                if links:
                    continue
                idle_s += EXPORT_POLL_S
                if idle_s >= EXPORT_KEEP_ALIVE_S:
                    idle_s = 0.0
                    yield b"\n"
                await anyio.sleep(EXPORT_POLL_S)

    async def _full_trail(self, tenant: TenantId) -> AsyncGenerator[list[Line]]:
        async with self._store.reading(tenant) as db:
            revision = await deleted_tenants.revision_of(tenant, db)
            anchor = await anchors.find(tenant, db)
            references = await anchors.references(tenant, db)
            last_numbers = await signed_heads.last_numbers(tenant, db)
            cut_keys = await export_keys.verify_keys(tenant, db, self._sealer)
        check = TrailCheck(self._keys, references=references, cut_keys=cut_keys)
        count = 0
        async for signatures in self._signatures(tenant, last_numbers):
            check.follow_signatures(signatures)
            yield [head_line(one) for one in signatures]
        async for removed, links in read_trail(tenant, self._store):
            check.follow_cuts(removed)
            check.follow(links)
            count += len(links)
            yield [*map(cut_line, removed), *map(entry_line, links)]
        found = check.anchor(anchor)
        chains = check.chains(revision)
        for first in range(0, len(chains), PART):
            yield [_chain_line(chain) for chain in chains[first : first + PART]]
        is_whole = found.is_whole and all(chain.is_whole for chain in chains)
        yield [_anchor_line(found, anchor), {"type": "end", "entries": count, "chains": len(chains), "ok": is_whole}]

    async def _filtered_trail(self, tenant: TenantId, wanted: AuditFilter) -> AsyncGenerator[list[Line]]:
        count, faults, last = 0, 0, None
        while removed := await self._cuts(tenant, last):
            last = removed[-1]
            yield [cut_line(one) for one in removed]
        async for part in self._entry_batches(tenant, wanted):
            for one, previous in part:
                faults += not is_authentic(self._keys, one, previous)  # guard: export-entries-authentic
            count += len(part)
            yield [entry_line(one) for one, _ in part]
        yield [{"type": "end", "entries": count, "faults": faults, "ok": not faults}]

    async def _cuts(self, tenant: TenantId, last: Cut | None) -> Sequence[Cut]:
        async with self._store.transaction(tenant) as db:
            return await cuts.page(tenant, db, after=last, limit=PART)

    async def _entry_batches(
        self, tenant: TenantId, wanted: AuditFilter
    ) -> AsyncGenerator[Sequence[tuple[Link, bytes | None]]]:
        """Yield the matching entries in batches, each entry with the MAC of its predecessor."""
        after = ""
        while True:
            async with self._store.transaction(tenant) as db:
                part = await entries.matching(tenant, db, wanted, after=after, limit=PART)
            if part:
                yield part
                after = part[-1][0].row.id
            if len(part) < PART:
                return

    async def _signatures(
        self, tenant: TenantId, last_numbers: Mapping[str, int]
    ) -> AsyncGenerator[Sequence[Signature]]:
        """Yield pages of signatures, up to the given number of each signer; later signatures are excluded."""
        last: Signature | None = None
        while True:
            async with self._store.transaction(tenant) as db:
                part = await signed_heads.signatures(tenant, db, after=last, limit=PART)
            yield [one for one in part if one.row.number <= last_numbers.get(one.row.signer, 0)]
            if len(part) < PART:
                return
            last = part[-1]


def _as_lines(links: Sequence[Link]) -> bytes:
    return b"".join(_encode(entry_line(one)) + b"\n" for one in links)


def _header(tenant: TenantId, wanted: AuditFilter) -> Line:
    filter_members = {name: value for name, value in asdict(wanted).items() if value is not None}
    return {"type": "export", "format": FORMAT, "tenant": tenant, "made_at": moment(now_us()), "filter": filter_members}


def _chain_line(chain: Chain) -> Line:
    fault = None if chain.fault is None else asdict(chain.fault)
    values = {name: getattr(chain, name) for name in ("writer", "entries", "first", "last", "faults")}
    return {"type": "chain", **values, "head": chain.head.hex(), "fault": fault}


def _anchor_line(found: Anchor, stored: StoredAnchor | None) -> Line:
    head = "" if stored is None else stored.row.head.hex()
    return {"type": "anchor", "state": found.state, "number": found.number, "head": head, "ok": found.is_whole}
