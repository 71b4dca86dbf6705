"""Cut records: signed statements about the entries that retention deleted from the beginning of a chain.

A record contains the number and MAC of the last deleted entry, so that the remaining chain can be verified from there.
It also contains a hash over all entries of the chain up to that entry, in exported form. The tenant's export key signs
the record. All records of one cut have the revision of the change `audit.cut`, whose entry contains a digest of their
signatures.
"""

import hashlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from sqlalchemy import func, select, text, tuple_
from sqlalchemy import insert as insert_into

from gateway.domain.identifiers import TenantId
from gateway.store.audit.export_lines import ExportKey, VerifyKey, moment
from gateway.store.audit.tables import audit_cuts
from gateway.store.engine import Db

ACTION = "audit.cut"
"""Action name of the change that deletes entries."""

_DELETE_ENTRIES = text("select cut_audit(:writer, :last)")


class CutRow(NamedTuple):
    """A cut record without its signature; the fields are signed in this order."""

    tenant: str
    writer: str
    first: int
    last: int
    revision: int
    oldest_us: int
    newest_us: int
    head: bytes
    content: bytes
    anchor: str
    at_us: int


class Cut(NamedTuple):
    """A cut record as stored; `signer` is the id of the signing key."""

    row: CutRow
    signer: str
    signature: bytes

    @classmethod
    def sign(cls, row: CutRow, key: ExportKey) -> "Cut":
        """Sign a cut record."""
        return cls(row, key.id, key.private.sign(statement(row)))

    def is_signed_by(self, keys: Iterable[VerifyKey]) -> bool:
        """True if one of these keys made the signature."""
        for key in keys:
            if key.id == self.signer:
                try:
                    Ed25519PublicKey.from_public_bytes(key.public).verify(self.signature, statement(self.row))
                except InvalidSignature:
                    return False
                return True
        return False


def statement(row: CutRow) -> bytes:
    """The bytes that the signature of a cut record covers."""
    values = (value.hex() if isinstance(value, bytes) else str(value) for value in row)
    return "\n".join(("gateway audit cut 1", *values, "")).encode()


def digest_of(cuts: Iterable[Cut]) -> str:
    """Digest over the signatures of all records of one cut, in order of writers."""
    return hashlib.sha256(b"".join(one.signature for one in cuts)).hexdigest()


def cut_line(cut: Cut) -> dict[str, object]:
    """A cut record as a line of an export."""
    row = cut.row
    values = {**row._asdict(), "head": row.head.hex(), "content": row.content.hex()}
    times = {"oldest": moment(row.oldest_us), "newest": moment(row.newest_us)}
    return {"type": "cut", **values, **times, "key": cut.signer, "signature": cut.signature.hex()}


async def apply(tenant: TenantId, db: Db, cut: Cut) -> int:
    """Store the record and delete the entries that it covers; return their number."""
    values = {"tenant_id": tenant, **cut.row._asdict(), "signer": cut.signer, "signature": cut.signature}
    del values["tenant"]
    await db.execute(insert_into(audit_cuts).values(**values))
    removed = await db.execute(_DELETE_ENTRIES, {"writer": cut.row.writer, "last": cut.row.last})
    return int(removed.scalar_one())


async def page(tenant: TenantId, db: Db, *, after: Cut | None, limit: int) -> Sequence[Cut]:
    """Cut records after `after`, sorted by revision and writer."""
    columns = audit_cuts.c
    query = select(*_STORED_COLUMNS).where(columns.tenant_id == tenant)
    if after is not None:
        query = query.where(tuple_(columns.revision, columns.writer) > (after.row.revision, after.row.writer))
    rows = await db.execute(query.order_by(columns.revision, columns.writer).limit(limit))
    return [_from_row(tuple(row)) for row in rows]


async def last(tenant: TenantId, db: Db, writer: str) -> Cut | None:
    """The newest cut record of a chain."""
    columns = audit_cuts.c
    found = select(*_STORED_COLUMNS).where(columns.tenant_id == tenant, columns.writer == writer)
    row = (await db.execute(found.order_by(columns.last.desc()).limit(1))).one_or_none()
    return None if row is None else _from_row(tuple(row))


async def totals(tenant: TenantId, db: Db) -> tuple[int, int | None]:
    """Number of deleted entries, and the time of the last cut in microseconds."""
    columns = audit_cuts.c
    found = select(func.sum(columns.last - columns.first + 1), func.max(columns.at_us))
    removed, at_us = (await db.execute(found.where(columns.tenant_id == tenant))).one()
    return int(removed or 0), at_us


_STORED_COLUMNS = tuple(
    audit_cuts.c["tenant_id" if name == "tenant" else name] for name in (*CutRow._fields, "signer", "signature")
)


def _from_row(values: tuple[object, ...]) -> Cut:
    return Cut(CutRow._make(values[:-2]), str(values[-2]), bytes(values[-1]))  # type: ignore[call-overload]
