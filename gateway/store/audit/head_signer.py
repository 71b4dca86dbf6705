"""Signer of the ends of audit chains: once a minute, for all tenants with new entries, and at shutdown.

Calls do not wait for the signer. A crashed replica usually leaves the entries of its last minute unsigned; a signer
that sees the tenant for the first time signs them. All replicas extend one chain of signatures per tenant; the tenant's
anchor (`audit_anchors`) names its end. A signer remembers the last signature that it made or read. If the
database no longer has that signature, the signer continues from memory, so `audit verify` finds the gap in the chain.
"""

from collections.abc import Sequence
from typing import Self

import anyio
import structlog

from gateway.domain.audit import AnchorKind
from gateway.domain.fairness.bounded_cache import BoundedCache
from gateway.domain.fairness.task_supervisor import TaskSupervisor
from gateway.domain.identifiers import TenantId
from gateway.errors import GatewayError
from gateway.store.audit import anchors, signed_heads
from gateway.store.audit.anchors import TRAIL, StoredAnchor, TrailHead
from gateway.store.audit.hash_chain import CATALOG, START
from gateway.store.audit.limits import CLOSE_S, MAX_KNOWN_HEADS, SIGN_PAUSE_S
from gateway.store.audit.outside_heads import OutsideHeads
from gateway.store.audit.signed_heads import End, HeadRow, Signature, seal
from gateway.store.audit.unsigned_tenants import Ends, UnsignedTenants
from gateway.store.engine import Db, Store

log = structlog.get_logger(__name__)

_PORTION = 1000
_MARK = End(CATALOG, 0, START)
"""Placeholder end of a signature that only records a missing predecessor."""


class AuditSigner:
    """The signer of one replica; open it with `async with`, once, while the store is open.

    `key` makes the signatures. The first of `anchor_keys` makes the MACs of anchors; the others only verify them.
    """

    def __init__(
        self,
        store: Store,
        moved: UnsignedTenants,
        *,
        key: bytes,
        anchor_keys: Sequence[bytes],
        outside: OutsideHeads | None = None,
        pause_s: float = SIGN_PAUSE_S,
    ) -> None:
        self._store = store
        self._moved = moved
        self._key = key
        self._anchor_keys = anchor_keys
        self._outside = OutsideHeads((), keys=(key,)) if outside is None else outside
        self._pause_s = pause_s
        self._tasks = TaskSupervisor()
        self._known = BoundedCache[TenantId, TrailHead](MAX_KNOWN_HEADS)

    @property
    def failing(self) -> Sequence[str]:
        """Names of its loops that fail again and again."""
        return self._tasks.failing

    async def __aenter__(self) -> Self:
        self._tasks.open(self._run)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop, and sign the latest entries for at most 3 s."""
        # The loop ends first: two rounds at once would sign the same ends.
        await self._tasks.close()
        with anyio.move_on_after(CLOSE_S, shield=True):
            await self._sign_logged()

    async def sign(self) -> None:
        """Sign the ends of the chains of all tenants with new entries, and deliver the heads to outside stores.

        The heads are delivered after every 1000 tenants. After an error, the remaining tenants are signed in the next
        round.

        Raises:
            DatabaseUnavailable: PostgreSQL does not respond.
        """
        is_portion_full = True
        while is_portion_full:
            tenants = self._moved.take(_PORTION)
            is_portion_full = len(tenants) == _PORTION
            await self._sign_all(tenants)

    async def _sign_all(self, tenants: dict[TenantId, Ends]) -> None:
        try:
            while tenants:
                tenant = next(iter(tenants))
                await self._sign(tenant, tenants[tenant])
                # Deleted only when signed: what is left after an error is noted again for the next round.
                del tenants[tenant]
        except BaseException:
            for tenant, ends in tenants.items():
                for writer, end in ends.items():
                    self._moved.note(tenant, writer, end)
            raise
        finally:
            # Delivered after an error as well: the heads before it are committed.
            await self._outside.deliver()

    async def _run(self) -> None:
        while True:
            await anyio.sleep(self._pause_s)
            await self._sign_logged()

    async def _sign_logged(self) -> None:
        try:
            await self.sign()
        except GatewayError as error:
            log.warning("audit_not_signed", reason=error.message)
        except Exception:
            log.exception("audit_not_signed")

    async def _sign(self, tenant: TenantId, ends: Ends) -> None:
        """Sign the tenant's unsigned ends: all ends when this signer first sees the tenant, later those of this
        replica's chains and of the changes.
        """
        is_first = tenant not in self._known
        known = await self._outside.recall(tenant) if is_first else self._known[tenant]  # guard: audit-signer-recalls
        async with self._store.upkeep(tenant) as db:  # guard: signing-outside-the-share
            anchor = await self._lock_anchor(tenant, db, known)
            before, is_behind = await self._find_previous_signature(tenant, db, anchor, known)
            found = await self._find_ends(tenant, db, ends, is_first=is_first)
            signatures = self._build_signatures(tenant, found or ([_MARK] if is_behind else []), before)
            if signatures:
                await signed_heads.append(tenant, db, signatures)
                last = TrailHead(signatures[-1].row.number, signatures[-1].mac)
                await anchors.save(tenant, db, last, key=self._anchor_keys[0], before=anchor.row)
        last = TrailHead(signatures[-1].row.number, signatures[-1].mac) if signatures else before
        # After the commit: a head that was rolled back must not be remembered.
        self._known[tenant] = last
        if signatures or (is_first and known is None):
            self._outside.note(tenant, last)

    async def _lock_anchor(self, tenant: TenantId, db: Db, known: TrailHead | None) -> StoredAnchor:
        """The tenant's anchor, locked until the transaction ends; a replacement if its MAC is invalid."""
        anchor = await anchors.find(tenant, db, is_locked=True)
        if anchor is None:
            kind = AnchorKind.ADOPTED if known is None else AnchorKind.BROKEN
            await anchors.insert(tenant, db, key=self._anchor_keys[0], kind=kind)
            anchor = await anchors.find(tenant, db, is_locked=True)
        if anchor is None or not anchor.is_sealed_by(self._anchor_keys):
            log.error("audit_anchor_refused", tenant_id=tenant)
            return anchors.make(tenant, key=self._anchor_keys[0], kind=AnchorKind.BROKEN)
        return anchor

    async def _find_previous_signature(
        self, tenant: TenantId, db: Db, anchor: StoredAnchor, known: TrailHead | None
    ) -> tuple[TrailHead, bool]:
        """The signature that the next signature follows, and True if the database lacks the remembered signature."""
        found = TrailHead(anchor.row.number, anchor.row.head)
        last = max(found.number, await anchors.last_number(tenant, db))  # a number is never reused
        if known is None or known == found or known.number == 0:  # guard: audit-signer-remembers
            return TrailHead(last, found.head), False
        if known.number < found.number and await anchors.has_signature(tenant, db, known):
            return TrailHead(last, found.head), False
        log.error("audit_trail_behind", tenant_id=tenant, known=known.number, found=found.number)
        return TrailHead(max(known.number, last), known.head), True

    async def _find_ends(self, tenant: TenantId, db: Db, ends: Ends, *, is_first: bool) -> Sequence[End]:
        """Unsigned ends. An end that this replica remembers takes precedence over the end in the database."""
        if is_first:
            found = await signed_heads.unsigned(tenant, db, signer=TRAIL)
        else:
            unknown = {writer for writer, end in ends.items() if end is None}
            found = await signed_heads.unsigned_of(tenant, db, {*unknown, CATALOG})
        known = [end for end in ends.values() if end is not None]
        return [*(end for end in found if end.writer not in {one.writer for one in known}), *known]

    def _build_signatures(self, tenant: TenantId, found: Sequence[End], before: TrailHead) -> Sequence[Signature]:
        number, previous = before
        signatures: list[Signature] = []
        for end in found:
            number += 1
            row = HeadRow(tenant, TRAIL, number, *end)
            previous = seal(self._key, previous, row)
            signatures.append(Signature(row, previous))
        return signatures
