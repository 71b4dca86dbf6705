"""Cut records: the entries that retention removed from the beginning of a chain, signed with the tenant's export key.

A record names the last removed entry with its MAC, which is the predecessor of the next entry. It also contains the
hash over the exported form of all entries of the chain up to there. The records of one cut have the revision of the
change `audit.cut`, whose entry contains a digest of their signatures.
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
"""The action of the change that removes entries."""

_CUT = text("select cut_audit(:writer, :last)")


class CutRow(NamedTuple):
    """One cut record without its signature, in the order in which its values are signed."""

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
    """One cut record in stored form; `signer` is the id of the key."""

    row: CutRow
    signer: str
    signature: bytes

    @classmethod
    def sign(cls, row: CutRow, key: ExportKey) -> "Cut":
        """The record, signed."""
        return cls(row, key.id, key.private.sign(statement(row)))

    def is_signed_by(self, keys: Iterable[VerifyKey]) -> bool:
        """True if one of these keys signed it."""
        for key in keys:
            if key.id == self.signer:
                try:
                    Ed25519PublicKey.from_public_bytes(key.public).verify(self.signature, statement(self.row))
                except InvalidSignature:
                    return False
                return True
        return False


def statement(row: CutRow) -> bytes:
    """The bytes that a cut record signs."""
    values = (value.hex() if isinstance(value, bytes) else str(value) for value in row)
    return "\n".join(("gateway audit cut 1", *values, "")).encode()


def digest_of(cuts: Iterable[Cut]) -> str:
    """The digest over the signatures of the records of one cut, in order of writers."""
    return hashlib.sha256(b"".join(one.signature for one in cuts)).hexdigest()


def cut_line(cut: Cut) -> dict[str, object]:
    """One cut record, as a line of an export."""
    row = cut.row
    values = {**row._asdict(), "head": row.head.hex(), "content": row.content.hex()}
    times = {"oldest": moment(row.oldest_us), "newest": moment(row.newest_us)}
    return {"type": "cut", **values, **times, "key": cut.signer, "signature": cut.signature.hex()}


async def apply(tenant: TenantId, db: Db, cut: Cut) -> int:
    """Store the record and remove the entries that it names; return their number."""
    values = {"tenant_id": tenant, **cut.row._asdict(), "signer": cut.signer, "signature": cut.signature}
    del values["tenant"]
    await db.execute(insert_into(audit_cuts).values(**values))
    removed = await db.execute(_CUT, {"writer": cut.row.writer, "last": cut.row.last})
    return int(removed.scalar_one())


async def page(tenant: TenantId, db: Db, *, after: Cut | None, limit: int) -> Sequence[Cut]:
    """Cut records after `after`, in order of revisions and writers."""
    columns = audit_cuts.c
    query = select(*_STORED).where(columns.tenant_id == tenant)
    if after is not None:
        query = query.where(tuple_(columns.revision, columns.writer) > (after.row.revision, after.row.writer))
    rows = await db.execute(query.order_by(columns.revision, columns.writer).limit(limit))
    return [_cut(tuple(row)) for row in rows]


async def last(tenant: TenantId, db: Db, writer: str) -> Cut | None:
    """The newest cut record of a chain."""
    columns = audit_cuts.c
    found = select(*_STORED).where(columns.tenant_id == tenant, columns.writer == writer)
    row = (await db.execute(found.order_by(columns.last.desc()).limit(1))).one_or_none()
    return None if row is None else _cut(tuple(row))


async def totals(tenant: TenantId, db: Db) -> tuple[int, int | None]:
    """The number of removed entries, and the time of the last cut in microseconds."""
    columns = audit_cuts.c
    found = select(func.sum(columns.last - columns.first + 1), func.max(columns.at_us))
    removed, at_us = (await db.execute(found.where(columns.tenant_id == tenant))).one()
    return int(removed or 0), at_us


_STORED = tuple(
    audit_cuts.c["tenant_id" if name == "tenant" else name] for name in (*CutRow._fields, "signer", "signature")
)


def _cut(values: tuple[object, ...]) -> Cut:
    return Cut(CutRow._make(values[:-2]), str(values[-2]), bytes(values[-1]))  # type: ignore[call-overload]
