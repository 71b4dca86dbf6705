"""Anchors of audit trails: one row per tenant, protected by a MAC, that names the trail's newest signature.

The anchor is created with the tenant, and each signing transaction updates it. The audit entry of each catalog change
refers to the signature that the anchor names at that time. So the verification detects a deleted signature, which the
anchor still names, and a deleted anchor, whose signatures the changes still name. A restored older anchor contradicts
the changes, the running signers and the heads outside the database.
"""

import hmac
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from sqlalchemy import RowMapping, func, select, text
from sqlalchemy.dialects.postgresql import insert as insert_into

from gateway.domain.audit import AnchorKind
from gateway.domain.identifiers import TenantId
from gateway.store.audit.hash_chain import CATALOG, START, now_us
from gateway.store.engine import Db
from gateway.store.tables import audit_anchors, audit_entries, audit_heads

ANCHOR_PURPOSE = "audit anchors"
"""Purpose for which the MAC key of anchors is derived."""

TRAIL = "trail"
"""Signer name of a tenant's single chain of signatures. Releases without anchors had one chain per signer."""

_NUMBER_BYTES, _HEAD_BYTES = 8, 16
REFERENCE_BYTES = _NUMBER_BYTES + _HEAD_BYTES


class TrailHead(NamedTuple):
    """The newest signature of an audit trail: its number and its MAC."""

    number: int = 0
    head: bytes = START


class AnchorRow(NamedTuple):
    """An anchor without its MAC."""

    tenant: str
    kind: str
    at_us: int
    number: int
    head: bytes


class StoredAnchor(NamedTuple):
    """An anchor as stored, with its MAC."""

    row: AnchorRow
    mac: bytes

    def is_sealed_by(self, keys: Sequence[bytes]) -> bool:
        """True if the MAC was made with one of these keys."""
        return any(hmac.compare_digest(seal_anchor(key, self.row), self.mac) for key in keys)


class AnchorReferences(NamedTuple):
    """Numbers of the signatures to which the entries of changes refer, up to the entry number `last`."""

    last: int = 0
    numbers: frozenset[int] = frozenset()


_encoder = msgspec.msgpack.Encoder()
_LOCK_ANCHOR = text("select 1 from audit_anchors where tenant_id = :tenant for update")


def seal_anchor(key: bytes, row: AnchorRow) -> bytes:
    """Compute the MAC of an anchor."""
    return hmac.digest(key, _encoder.encode(row), "sha256")


def refer_to(trail: TrailHead) -> bytes:
    """Encode a reference to the trail's newest signature, for the audit entry of a change."""
    number = max(trail.number, 0)  # the row may have been edited to a negative number
    return number.to_bytes(_NUMBER_BYTES, "big") + trail.head[:_HEAD_BYTES].ljust(_HEAD_BYTES, b"\0")


def read_reference(reference: bytes) -> TrailHead | None:
    """Decode the signature number and shortened MAC of an entry's reference; None if the entry has no reference."""
    if len(reference) != REFERENCE_BYTES:
        return None
    return TrailHead(int.from_bytes(reference[:_NUMBER_BYTES], "big"), reference[_NUMBER_BYTES:])


def make(tenant: TenantId, *, key: bytes, kind: AnchorKind) -> StoredAnchor:
    """Build the anchor of an audit trail without signatures."""
    return _build_stored(key, AnchorRow(tenant, kind.value, now_us(), *TrailHead()))


async def insert(tenant: TenantId, db: Db, *, key: bytes, kind: AnchorKind) -> None:
    """Add the anchor of an audit trail without signatures, unless the tenant already has an anchor."""
    new_anchor = make(tenant, key=key, kind=kind)
    await db.execute(insert_into(audit_anchors).values(**_columns(new_anchor)).on_conflict_do_nothing())


async def save(tenant: TenantId, db: Db, trail: TrailHead, *, key: bytes, before: AnchorRow) -> None:
    """Update the anchor to name a newer signature."""
    updated = _build_stored(key, AnchorRow(tenant, before.kind, before.at_us, *trail))
    statement = insert_into(audit_anchors).values(**_columns(updated))
    await db.execute(statement.on_conflict_do_update(index_elements=["tenant_id"], set_=_columns(updated)))


async def find(tenant: TenantId, db: Db, *, is_locked: bool = False) -> StoredAnchor | None:
    """The tenant's anchor; `is_locked` blocks other signers of the tenant until the transaction ends."""
    if is_locked:
        await db.execute(_LOCK_ANCHOR, {"tenant": tenant})
    row = (await db.execute(select(audit_anchors).where(audit_anchors.c.tenant_id == tenant))).mappings().one_or_none()
    return None if row is None else _from_row(row)


async def has_signature(tenant: TenantId, db: Db, trail: TrailHead) -> bool:
    """True if the chain of signatures contains this signature."""
    columns = audit_heads.c
    named = (columns.tenant_id == tenant, columns.signer == TRAIL, columns.number == trail.number)
    mac = (await db.execute(select(columns.mac).where(*named))).scalar_one_or_none()
    return mac is not None and hmac.compare_digest(mac, trail.head)


async def last_number(tenant: TenantId, db: Db) -> int:
    """The highest number in the chain of signatures; 0 when it is empty."""
    columns = audit_heads.c
    found = select(func.max(columns.number)).where(columns.tenant_id == tenant, columns.signer == TRAIL)
    return (await db.execute(found)).scalar_one() or 0


async def references(tenant: TenantId, db: Db) -> AnchorReferences:
    """The signatures to which the entries of changes refer, and the number of the last entry that was read."""
    columns = audit_entries.c
    found = select(func.max(columns.seq), func.array_agg(columns.digest.distinct()))
    row = (await db.execute(found.where(columns.tenant_id == tenant, columns.writer == CATALOG))).one()
    named = [read_reference(digest) for digest in row[1] or ()]
    return AnchorReferences(row[0] or 0, frozenset(trail.number for trail in named if trail is not None))


def _build_stored(key: bytes, row: AnchorRow) -> StoredAnchor:
    return StoredAnchor(row, seal_anchor(key, row))


def _columns(anchor: StoredAnchor) -> dict[str, object]:
    tenant, kind, at_us, number, head = anchor.row
    return {"tenant_id": tenant, "kind": kind, "at_us": at_us, "number": number, "head": head, "mac": anchor.mac}


def _from_row(row: RowMapping) -> StoredAnchor:
    found = AnchorRow(row["tenant_id"], row["kind"], row["at_us"], row["number"], row["head"])
    return StoredAnchor(found, row["mac"])
