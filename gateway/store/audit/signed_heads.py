"""Signatures of the ends of a tenant's audit chains, stored beside the chains.

A chain alone reveals a change or a deletion in its middle, but not a deletion at its end. A signature names a chain,
its last number and its head, so an attacker who deletes the end has to delete the signature, too. The signatures of
one signer also form a chain, and a later signer signs the ends of earlier signers' chains.
"""

import hmac
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import msgspec
from sqlalchemy import ARRAY, Text, bindparam, func, select, text, tuple_
from sqlalchemy import insert as insert_into

from gateway.domain.audit import SIGNERS
from gateway.domain.identifiers import TenantId
from gateway.store.engine import Db
from gateway.store.tables import audit_heads


class End(NamedTuple):
    """The end of a chain: the number and the MAC of its last entry."""

    writer: str
    seq: int
    head: bytes


class HeadRow(NamedTuple):
    """A signature without its MAC."""

    tenant: str
    signer: str
    number: int
    writer: str
    seq: int
    head: bytes


class Signature(NamedTuple):
    """A signature as stored, with its MAC."""

    row: HeadRow
    mac: bytes


_encoder = msgspec.msgpack.Encoder()

_UNSIGNED = """
    where not exists (
        select from audit_heads h where h.tenant_id = :tenant and h.writer = ends.writer and h.seq >= ends.seq
    )
    order by ends.writer
"""

_ALL_ENDS = text(f"""
    with recursive writers as (
        (
            select writer, seq, mac from audit_entries
            where tenant_id = :tenant order by writer desc, seq desc limit 1
        )
        union all
        select found.* from writers, lateral (
            select e.writer, e.seq, e.mac from audit_entries e
            where e.tenant_id = :tenant and e.writer < writers.writer order by e.writer desc, e.seq desc limit 1
        ) found
    ), signers as (
        (
            select signer, number, mac from audit_heads
            where tenant_id = :tenant order by signer desc, number desc limit 1
        )
        union all
        select found.* from signers, lateral (
            select h.signer, h.number, h.mac from audit_heads h
            where h.tenant_id = :tenant and h.signer < signers.signer order by h.signer desc, h.number desc limit 1
        ) found
    ), ends as (
        select writer, seq, mac from writers
        union all
        select :signers || signer, number, mac from signers where signer <> :signer
    )
    select ends.writer, ends.seq, ends.mac from ends {_UNSIGNED}
""")  # noqa: S608  # a constant; each chain costs one step in its index, however long it is

_ENDS_OF = text(f"""
    select ends.writer, ends.seq, ends.mac
    from unnest(:writers) named (writer), lateral (
        select e.writer, e.seq, e.mac from audit_entries e
        where e.tenant_id = :tenant and e.writer = named.writer order by e.seq desc limit 1
    ) ends {_UNSIGNED}
""").bindparams(bindparam("writers", type_=ARRAY(Text)))  # noqa: S608


def seal(key: bytes, previous: bytes, row: HeadRow) -> bytes:
    """The MAC of a signature that follows the one with the MAC `previous`."""
    return hmac.digest(key, previous + _encoder.encode(row), "sha256")


async def unsigned(tenant: TenantId, db: Db, *, signer: str) -> Sequence[End]:
    """The unsigned ends of all chains of entries, and of the signature chains of other signers than `signer`."""
    named = {"tenant": tenant, "signer": signer, "signers": SIGNERS}
    return [End._make(row) for row in await db.execute(_ALL_ENDS, named)]


async def unsigned_of(tenant: TenantId, db: Db, writers: Collection[str]) -> Sequence[End]:
    """The unsigned ends of these writers' chains."""
    named = {"tenant": tenant, "writers": sorted(writers)}
    return [End._make(row) for row in await db.execute(_ENDS_OF, named)]


async def append(tenant: TenantId, db: Db, signatures: Sequence[Signature]) -> None:
    """Add signatures."""
    rows = [
        {
            "tenant_id": tenant,
            "signer": row.signer,
            "number": row.number,
            "writer": row.writer,
            "seq": row.seq,
            "head": row.head,
            "mac": mac,
        }
        for row, mac in signatures
    ]
    await db.execute(insert_into(audit_heads), rows)


async def last_numbers(tenant: TenantId, db: Db) -> Mapping[str, int]:
    """The number of the last signature of each signer."""
    columns = audit_heads.c
    found = select(columns.signer, func.max(columns.number)).where(columns.tenant_id == tenant)
    return {str(signer): int(number) for signer, number in await db.execute(found.group_by(columns.signer))}


async def signatures(tenant: TenantId, db: Db, *, after: Signature | None, limit: int) -> Sequence[Signature]:
    """Signatures after `after`, sorted by signer and number."""
    columns = audit_heads.c
    named = columns.tenant_id, columns.signer, columns.number, columns.writer, columns.seq, columns.head, columns.mac
    query = select(*named).where(columns.tenant_id == tenant)
    if after is not None:
        query = query.where(tuple_(columns.signer, columns.number) > (after.row.signer, after.row.number))
    rows = await db.execute(query.order_by(columns.signer, columns.number).limit(limit))
    return [Signature(row=HeadRow._make(row[:-1]), mac=row[-1]) for row in rows]
