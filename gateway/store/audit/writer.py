"""Writer of the audit entries of calls, committed in groups.

Entries that arrive during a commit share the next commit; a lone entry is committed at once. While calls are
concurrent, a group waits 1 ms for more entries, so that more entries share the cost of a commit. A group costs one
round trip, with a prepared statement on a permanent connection. After any failure the connection and the chains are
new, so an entry that may have been stored cannot collide with later entries.

While PostgreSQL is unreachable, outcomes go to the spool if one is configured, and the callers receive their responses.
Intents are refused, so that their calls do not run.
"""

import asyncio
import time
from collections.abc import Iterable, Sequence
from enum import Enum, auto
from typing import Self

import anyio
import asyncpg
import structlog

from gateway.domain.audit import AuditKind, CallRecord
from gateway.domain.fairness.queue import FairQueue
from gateway.domain.fairness.task_supervisor import TaskSupervisor
from gateway.domain.tenancy.configured_secret import ConfiguredSecret
from gateway.errors import AuditUnavailable, GatewayError, LimitExceeded, Unavailable
from gateway.store.audit.chain_writer import APPEND, ChainWriter, StoredRow
from gateway.store.audit.hash_chain import AuditRow, now_us
from gateway.store.audit.limits import (
    BACK_OFF_S,
    COMMIT_S,
    FAILURE_S,
    LINGER_S,
    MAX_GROUP,
    MAX_QUEUED,
    SPOOL_S,
    WRITER_CLOSE_S,
)
from gateway.store.audit.spool import SpoolStore, pack
from gateway.store.audit.unsigned_tenants import UnsignedTenants
from gateway.store.database.circuit_breaker import DatabaseBreaker, bounded_wait
from gateway.store.database.connection import PostgresConnection, Statement, connect_app
from gateway.store.database.errors import CONNECTION_ERRORS, is_read_only
from gateway.store.database.limits import PROMPT_S

log = structlog.get_logger(__name__)


_STORE_ERRORS = (GatewayError, *CONNECTION_ERRORS, asyncpg.PostgresError, asyncpg.InterfaceError)

_ID, _AT = AuditRow._fields.index("id"), AuditRow._fields.index("at_us")
_Waiting = tuple[CallRecord, "asyncio.Future[None]"]


class _State(Enum):
    """The states of a writer, in this order; only an open writer accepts records."""

    OPEN = auto()
    DRAINING = auto()
    """The waiting records are written."""
    CLOSED = auto()
    """The writer is not in its block. A failure of the writing task does not close it: the task starts again."""


_OPEN = _State.OPEN  # an enum lookup costs more than a function call


class AuditWriter:
    """Writes call records; open it once per replica."""

    def __init__(
        self,
        url: str | ConfiguredSecret,
        *,
        chain_key: bytes,
        overflow: SpoolStore | None = None,
        silence: DatabaseBreaker | None = None,
        moved: UnsignedTenants | None = None,
    ) -> None:
        self._url = url
        self._moved = UnsignedTenants() if moved is None else moved
        self._chain_key = chain_key
        self.queue = self._waiting = FairQueue[_Waiting]("audit entries", size=MAX_QUEUED)
        self._wake = asyncio.Event()
        self._ended = asyncio.Event()
        self._state = _State.CLOSED
        self._connection: PostgresConnection | None = None
        self._statement: Statement | None = None
        self._chains = ChainWriter(chain_key)
        self._tasks = TaskSupervisor()
        self._overflow = overflow
        self._breaker = DatabaseBreaker() if silence is None else silence
        self._generation = self._breaker.generation
        self._names = ChainWriter(chain_key)  # ids of entries that no connection has written
        self._backs_off_until = 0.0
        self._failed_at: float | None = None
        self.written = 0
        self.kept = 0
        self.failed = 0

    @property
    def waiting(self) -> int:
        """Number of entries that wait for a group."""
        return len(self._waiting)

    @property
    def kept_waiting(self) -> int | None:
        """Number of spooled entries of all replicas; None while it is unknown."""
        return None if self._overflow is None else self._overflow.waiting

    async def check(self) -> None:
        """Check that the writer takes entries and writes them; asks nothing of PostgreSQL.

        Raises:
            AuditUnavailable: it is closed, or its task fails again and again.
        """
        if self._state is not _OPEN or self._tasks.failing:
            raise AuditUnavailable("the audit writer does not work; see the log")

    async def check_stored(self) -> None:
        """Check that PostgreSQL has stored the last group of entries, unless that was 20 s ago.

        Raises:
            AuditUnavailable: it has not. Outcomes may wait in Redis.
        """
        if self._failed_at is not None and time.monotonic() - self._failed_at < FAILURE_S:
            raise AuditUnavailable("PostgreSQL did not store the last audit entries")

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._tasks.open(self._run)
        self._state = _OPEN
        return self

    async def __aexit__(self, *_: object) -> None:
        """Write the waiting entries for at most 5 s, then close."""
        if self._state is _OPEN:
            self._state = _State.DRAINING
        self._wake.set()
        with anyio.move_on_after(WRITER_CLOSE_S, shield=True):
            await self._ended.wait()
            if self._connection is not None:
                await self._connection.close()
        self._drop_connection()
        await self._tasks.close()
        self._state = _State.CLOSED
        self.failed += _fail(self._waiting)

    async def write(self, record: CallRecord) -> None:
        """Return when the record is committed or spooled. Cancellation of the caller does not withdraw it.

        Raises:
            AuditUnavailable: the writer is closed, its queue is full, or the record may be neither stored nor spooled.
        """
        if self._state is not _OPEN:
            raise _unavailable()
        written: asyncio.Future[None] = self._loop.create_future()
        try:
            self._waiting.put(record.tenant, (record, written))
        except LimitExceeded as error:
            raise AuditUnavailable(error.message, retry_after_s=error.retry_after_s) from None
        self._wake.set()
        await written

    async def _run(self) -> None:
        """Write group after group until the writer is closed and nothing waits.

        Whatever ends it early leaves the writer open, and the waiting entries for the task that starts again.
        """
        previous_size = 0
        while self._state is _OPEN or self._waiting:
            if not self._waiting:
                self._wake.clear()
                await self._wake.wait()
                continue
            if len(self._waiting) < previous_size:
                await asyncio.sleep(LINGER_S)
            group = self._waiting.take(MAX_GROUP)
            previous_size = len(group) if len(group) > 1 else 0
            try:
                await self._write_group(group)
            except Exception:
                self._drop_connection()
                log.exception("audit_group_failed", entries=len(group))
            finally:
                self.failed += _fail(group)
        self._ended.set()

    async def _write_group(self, group: Sequence[_Waiting]) -> None:
        if self._backs_off():
            await self._spool_outcomes(group, None)
            return
        rows: list[StoredRow] | None = None
        try:
            async with bounded_wait(self._deadline(group)):
                statement = await self._prepared_statement()
                rows = self._chains.rows(record for record, _ in group)
                await statement.fetchval(rows)
        except (asyncpg.DataError, asyncpg.IntegrityConstraintViolationError):
            # No record of the group is stored. One record is at fault; the other records must not fail with it.
            self._drop_connection()
            if len(group) > 1:
                for single in group:
                    await self._write_group([single])
        except _STORE_ERRORS as error:
            self._drop_connection()
            self._note_failure(error, was_connected=rows is not None)
            await self._spool_outcomes(group, rows)
            cause = error.cause if isinstance(error, Unavailable) else str(error)
            log.warning("audit_unavailable", entries=len(group), error=type(error).__name__, reason=cause)
        else:
            self._breaker.end()
            self._failed_at = None
            self.written += len(group)
            _succeed(group)
            for tenant in {record.tenant for record, _ in group}:
                # guard: audit-signed-from-memory
                self._moved.note(tenant, self._chains.writer, self._chains.end_of(tenant))

    def _deadline(self, group: Sequence[_Waiting]) -> float:
        """Deadline of a group: `PROMPT_S` if it contains outcomes that can be spooled, otherwise `COMMIT_S`."""
        is_kept = self._overflow is not None and any(record.kind is AuditKind.CALL for record, _ in group)
        return PROMPT_S if is_kept else COMMIT_S

    def _backs_off(self) -> bool:
        if self._overflow is None:
            return False
        return time.monotonic() < self._backs_off_until or not self._breaker.may_ask()

    def _note_failure(self, error: Exception, *, was_connected: bool) -> None:
        """Record a failure: a broken connection is replaced at once, an unreachable database causes a back-off."""
        self._failed_at = time.monotonic()
        if isinstance(error, TimeoutError):
            self._breaker.note()
            return
        self._breaker.end()  # PostgreSQL has responded
        if is_read_only(error):
            self._breaker.replace_connections()
        if self._overflow is not None and (not was_connected or is_read_only(error)):
            self._backs_off_until = time.monotonic() + BACK_OFF_S

    async def _spool_outcomes(self, group: Sequence[_Waiting], rows: list[StoredRow] | None) -> None:
        """Spool the outcomes. An outcome keeps the id of its row, because that row may have been stored."""
        outcomes = [(index, one) for index, one in enumerate(group) if one[0].kind is AuditKind.CALL]
        if self._overflow is None or not outcomes:
            return
        try:
            entries = [self._pack(record, None if rows is None else rows[index]) for index, (record, _) in outcomes]
            async with bounded_wait(SPOOL_S):
                await self._overflow.keep(entries)
        except (Unavailable, TimeoutError) as error:
            log.warning("audit_not_kept", entries=len(outcomes), error=type(error).__name__)
            return
        self.kept += len(outcomes)
        _succeed([one for _, one in outcomes])

    def _pack(self, record: CallRecord, row: StoredRow | None) -> bytes:
        if row is not None:
            row_id, at_us = row[_ID], row[_AT]
            if isinstance(row_id, str) and isinstance(at_us, int):
                return pack(record, row_id, at_us)
        at_us = now_us()
        return pack(record, self._names.next_id(at_us), at_us)

    async def _prepared_statement(self) -> Statement:
        """The prepared statement, on a new connection if the old one is closed."""
        is_old = self._generation != self._breaker.generation
        if self._statement is None or self._connection is None or self._connection.is_closed() or is_old:
            self._drop_connection()
            self._generation = self._breaker.generation
            self._connection = await connect_app(self._url)
            self._statement = await self._connection.prepare(APPEND)
        if self._chains.is_full:
            self._chains = ChainWriter(self._chain_key)
        return self._statement

    def _drop_connection(self) -> None:
        """Drop the connection; the next group gets a new connection and new chains."""
        if self._connection is not None:
            self._connection.terminate()
        self._connection = self._statement = None
        self._chains = ChainWriter(self._chain_key)


def _succeed(group: Iterable[_Waiting]) -> None:
    for _, written in group:
        if not written.done():
            written.set_result(None)


def _fail(waiting: Iterable[_Waiting]) -> int:
    """Fail all callers that still wait; return their number."""
    unresolved = [written for _, written in waiting if not written.done()]
    for written in unresolved:
        written.set_exception(_unavailable())
    return len(unresolved)


def _unavailable() -> AuditUnavailable:
    return AuditUnavailable("The audit entry could not be stored.")
