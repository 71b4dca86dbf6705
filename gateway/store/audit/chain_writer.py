"""Hash chains of one database connection, one per tenant: assigns numbers and MACs to audit rows."""

import secrets
from collections.abc import Iterable
from typing import TypeAlias

import orjson

from gateway.domain.audit import CallRecord
from gateway.store.audit.hash_chain import START, AuditRow, audit_id, link, now_us, storable
from gateway.store.audit.limits import MAX_CHAINS
from gateway.store.audit.signed_heads import End

APPEND = "select append_audit($1::audit_row[])"
"""Insert statement for a list of `StoredRow`: `asyncpg` needs 4 type checks per row, not 35 as for column arrays."""

StoredRow: TypeAlias = tuple[object, ...]
"""The values of an `AuditRow`, followed by its MAC."""


class ChainWriter:
    """The chains of one connection; stores the number and MAC of the last row of each tenant."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self.writer = secrets.token_hex(8)
        self._mark = secrets.token_hex(4)[:5]
        self._written = 0
        self._ends: dict[str, tuple[int, bytes]] = {}

    @property
    def is_full(self) -> bool:
        """True at 10,000 chains; the caller then creates a new writer, which bounds the memory for chain ends."""
        return len(self._ends) >= MAX_CHAINS

    def rows(self, records: Iterable[CallRecord]) -> list[StoredRow]:
        """Build rows for these records with new ids and the current time; each row extends its tenant's chain."""
        at_us = now_us()
        return [self._add(record, self.next_id(at_us), at_us) for record in records]

    def rows_of(self, entries: Iterable[tuple[CallRecord, str, int]]) -> list[StoredRow]:
        """Build rows for records that already have an id and a time; each row extends its tenant's chain."""
        return [self._add(record, row_id, at_us) for record, row_id, at_us in entries]

    def end_of(self, tenant: str) -> End:
        """The end of the tenant's chain; valid once all rows built so far are stored."""
        return End(self.writer, *self._ends.get(tenant, (0, START)))

    def next_id(self, at_us: int) -> str:
        """Generate an id that sorts by time, then by this writer's counter."""
        self._written += 1
        return audit_id(at_us, f"{self._mark}{self._written & 0xFFFF:04x}")

    def _add(self, record: CallRecord, row_id: str, at_us: int) -> StoredRow:
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
            _detail(record),
        )
        mac = link(self._key, previous, row)
        self._ends[tenant] = (seq + 1, mac)
        return (*row, mac)


def _detail(record: CallRecord) -> str:
    if record.levels is None:
        return orjson.dumps(record.detail).decode() if record.detail else "{}"
    levels = dict(zip(("safety", "assessed"), record.levels, strict=True))
    return orjson.dumps({**levels, **(record.detail or {})}).decode()
