"""Spool of audit entries while the database is unavailable: their stored form, and the drain that writes them in order.

Each entry keeps its id and time. So an entry results in one row, even if it had already reached the database or is
drained twice.
"""

from collections.abc import AsyncGenerator, Sequence, Set
from contextlib import asynccontextmanager, suppress
from typing import Protocol, Self

import anyio
import asyncpg
import msgspec
import structlog
from msgspec.structs import replace
from sqlalchemy import text

from gateway.domain.audit import CallRecord
from gateway.domain.fairness.task_supervisor import TaskSupervisor
from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.configured_secret import ConfiguredSecret
from gateway.errors import GatewayError
from gateway.store.audit.chain_writer import APPEND, ChainWriter
from gateway.store.audit.hash_chain import CATALOG, storable
from gateway.store.audit.limits import DRAIN_PAUSE_S, MAX_DRAIN_S
from gateway.store.audit.unsigned_tenants import UnsignedTenants
from gateway.store.database.connection import PostgresConnection, connect_app
from gateway.store.database.errors import CONNECTION_ERRORS
from gateway.store.engine import Store

log = structlog.get_logger(__name__)

_GROUP_SIZE = 256
_START = "0-0"
_SELECT_INSTALLATION = text("select installation_id()")
_SELECT_STORED = "select id from audit_entries where id = any($1::text[])"
_IS_KNOWN = "select exists (select from audit_entries where tenant_id = $1 and writer = $2)"
_STORE_ERRORS = (GatewayError, *CONNECTION_ERRORS, asyncpg.PostgresError, asyncpg.InterfaceError)


class SpoolStore(Protocol):
    """Storage of the spooled entries; an entry is durable once `keep` has returned."""

    waiting: int | None
    """Number of spooled entries of all replicas; None while it is unknown."""

    def belong_to(self, installation: str) -> None:
        """Set the installation that owns the entries; before this call, the spool stores and returns no entries."""
        ...

    async def keep(self, entries: Sequence[bytes]) -> None:
        """Append these entries in this order, or raise Unavailable."""
        ...

    async def peek(self, limit: int) -> Sequence[tuple[str, bytes]]:
        """The oldest entries with their positions; empty while another replica drains the spool."""
        ...

    async def forget(self, entry_ids: Sequence[str]) -> None:
        """Delete these entries."""
        ...

    async def peek_shared(self, after: str, limit: int) -> tuple[str, Sequence[tuple[str, bytes]]]:
        """Entries of older replicas after the position `after` in the shared spool, and the last position read.

        Installations share that spool, so it may contain entries of other installations.
        """
        ...

    async def forget_shared(self, entry_ids: Sequence[str]) -> None:
        """Delete these entries of the shared spool."""
        ...


class Entry(msgspec.Struct, array_like=True, frozen=True):
    """One record with the id and the time of its row."""

    id: str
    at_us: int
    record: CallRecord


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Entry).decode


def pack(record: CallRecord, row_id: str, at_us: int) -> bytes:
    """The record in spooled form, with the id and the time of its row."""
    tidy = replace(
        record,
        principal=storable(record.principal),
        subject=storable(record.subject),
        tool=storable(record.tool),
        outcome=storable(record.outcome),
        correlation_id=storable(record.correlation_id),
    )
    return _encode(Entry(row_id, at_us, tidy))


class SpoolDrain:
    """Writes spooled entries to the database, and checks for entries once a second. Open it once per replica."""

    def __init__(
        self,
        url: str | ConfiguredSecret,
        overflow: SpoolStore,
        *,
        store: Store,
        chain_key: bytes,
        moved: UnsignedTenants | None = None,
        pause_s: float = DRAIN_PAUSE_S,
    ) -> None:
        self._url = url
        self._moved = UnsignedTenants() if moved is None else moved
        self._overflow = overflow
        self._database = store
        self._chain_key = chain_key
        self._pause_s = pause_s
        self._tasks = TaskSupervisor()
        self._has_installation = False
        self._looked_until = _START
        self.brought_back = 0

    @property
    def failing(self) -> Sequence[str]:
        """Names of its loops that fail again and again."""
        return self._tasks.failing

    async def __aenter__(self) -> Self:
        with suppress(*_STORE_ERRORS):  # `_run` repeats this before it drains
            await self._set_installation()
        self._tasks.open(self._run)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._tasks.close()

    async def _run(self) -> None:
        while True:
            await anyio.sleep(self._pause_s)
            try:
                await self._set_installation()
                if waiting := await self._overflow.peek(_GROUP_SIZE):
                    await self._restore(waiting)
                await self._restore_shared()
            except _STORE_ERRORS as error:
                log.debug("audit_not_brought_back", error=type(error).__name__)
            except Exception:
                log.exception("audit_not_brought_back")

    async def _set_installation(self) -> None:
        """Set the installation of this database in the spool."""
        if self._has_installation:
            return
        async with self._database.lookup() as db:
            self._overflow.belong_to((await db.execute(_SELECT_INSTALLATION)).scalar_one())
        self._has_installation = True

    async def _restore(self, waiting: Sequence[tuple[str, bytes]]) -> None:
        """Write all spooled entries, in groups on one connection, as new chains."""
        async with self._connect() as connection:
            chains = ChainWriter(self._chain_key)
            while waiting:
                with anyio.fail_after(MAX_DRAIN_S):
                    await self._store(connection, chains, [_decode(entry) for _, entry in waiting])
                    await self._overflow.forget([entry_id for entry_id, _ in waiting])
                self._log_restored(len(waiting))
                waiting = await self._overflow.peek(_GROUP_SIZE)

    async def _restore_shared(self) -> None:
        """Write the entries that replicas of the previous release left, if their tenants belong to this database.

        Other entries stay for their own installation, and this replica does not read them again.
        """
        until, waiting = await self._overflow.peek_shared(self._looked_until, _GROUP_SIZE)
        while until != self._looked_until:
            async with self._connect() as connection:
                with anyio.fail_after(MAX_DRAIN_S):
                    entries = {entry_id: _decode(entry) for entry_id, entry in waiting}
                    known = await _find_known_tenants(connection, {entry.record.tenant for entry in entries.values()})
                    # guard: overflow-of-its-tenants
                    ours = {entry_id: entry for entry_id, entry in entries.items() if entry.record.tenant in known}
                    await self._store(connection, ChainWriter(self._chain_key), list(ours.values()))
                    await self._overflow.forget_shared(list(ours))
            self._looked_until = until
            self._log_restored(len(ours))
            until, waiting = await self._overflow.peek_shared(until, _GROUP_SIZE)

    def _log_restored(self, entries: int) -> None:
        if entries:
            self.brought_back += entries
            log.info("audit_brought_back", entries=entries)

    @asynccontextmanager
    async def _connect(self) -> AsyncGenerator[PostgresConnection]:
        connection = await connect_app(self._url)
        try:
            yield connection
        finally:
            connection.terminate()

    async def _store(self, connection: PostgresConnection, chains: ChainWriter, entries: Sequence[Entry]) -> None:
        stored: set[object] = set()
        for tenant in {entry.record.tenant for entry in entries}:
            await connection.fetchval("select set_config('app.tenant', $1, false)", tenant)
            ids = [entry.id for entry in entries if entry.record.tenant == tenant]
            stored |= {row["id"] for row in await connection.fetch(_SELECT_STORED, ids)}
        missing = {entry.id: entry for entry in entries if entry.id not in stored}
        if missing:
            rows = [(one.record, one.id, one.at_us) for one in missing.values()]
            await connection.fetchval(APPEND, chains.rows_of(rows))
            for record, _, _ in rows:
                self._moved.note(record.tenant, chains.writer, chains.end_of(record.tenant))


async def _find_known_tenants(connection: PostgresConnection, tenants: Set[TenantId]) -> Set[TenantId]:
    """The tenants that this database has or had: the audit trail contains their creation and outlives them."""
    known: set[TenantId] = set()
    for tenant in tenants:
        await connection.fetchval("select set_config('app.tenant', $1, false)", tenant)
        if await connection.fetchval(_IS_KNOWN, tenant, CATALOG):
            known.add(tenant)
    return known
