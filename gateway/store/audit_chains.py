"""The chains that one connection writes: rows numbered and tied together, one chain per tenant, made into columns."""

import secrets
from collections.abc import Iterable, Sequence

import orjson

from gateway.domain.audit import CallRecord
from gateway.domain.policy import Levels
from gateway.store.audit_chain import START, AuditRow, audit_id, link, now_us, storable
from gateway.store.audit_heads import End

APPEND = """
select append_audit(
    $1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::text[], $7::text[], $8::text[], $9::text[],
    $10::text[], $11::text[], $12::text[], $13::bytea[], $14::integer[], $15::bigint[], $16::bigint[], $17::text[],
    $18::bytea[]
)
"""
_MOST_CHAINS = 10_000


class Chains:
    """The ends of this connection's chains, one per tenant."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self.writer = secrets.token_hex(8)
        self._mark = secrets.token_hex(4)[:5]
        self._written = 0
        self._ends: dict[str, tuple[int, bytes]] = {}

    @property
    def is_full(self) -> bool:
        """Whether so many tenants were seen that starting over is cheaper than remembering them."""
        return len(self._ends) >= _MOST_CHAINS

    def columns(self, records: Sequence[CallRecord]) -> list[list[object]]:
        """The group as columns with ids of this moment, MACs last; the chains move on."""
        at_us = now_us()
        return self.columns_of((record, self.next_id(at_us), at_us) for record in records)

    def columns_of(self, entries: Iterable[tuple[CallRecord, str, int]]) -> list[list[object]]:
        """The same of records that have their ids and times."""
        rows = [self._add(record, row_id, at_us) for record, row_id, at_us in entries]
        return [list(column) for column in zip(*rows, strict=True)]

    def end_of(self, tenant: str) -> End:
        """Last entry of the tenant's chain, once the result of `columns` is stored."""
        return End(self.writer, *self._ends.get(tenant, (0, START)))

    def next_id(self, at_us: int) -> str:
        """An id that sorts behind all that were given out here before."""
        self._written += 1
        return audit_id(at_us, f"{self._mark}{self._written & 0xFFFF:04x}")

    def _add(self, record: CallRecord, row_id: str, at_us: int) -> tuple[object, ...]:
        tenant = str(record.tenant)
        seq, previous = self._ends.get(tenant, (0, START))
        row = AuditRow(
            tenant,
            row_id,
            self.writer,
            seq + 1,
            at_us,
            record.kind.value,
            storable(record.principal),
            storable(record.subject),
            record.action,
            storable(record.tool),
            storable(record.outcome),
            storable(record.correlation_id),
            record.digest,
            record.status,
            record.duration_us,
            record.result_bytes,
            "{}" if record.levels is None else _detail(record.levels),
        )
        mac = link(self._key, previous, row)
        self._ends[tenant] = (seq + 1, mac)
        return (*row, mac)


def _detail(levels: Levels) -> str:
    declared, assessed = levels
    return orjson.dumps({"safety": declared, "assessed": assessed}).decode()
