"""The audit entries of calls, committed in groups.

Entries gather while a commit is under way and share the next one; the first starts at once. There is no timer. One
held connection and one prepared statement make it one round trip per group. After any failure the connection and
the chain are new, so an outcome that nobody knows cannot collide with what follows.
"""

import asyncio
import secrets
from collections import deque
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Self

import anyio
import asyncpg
import structlog
from anyio.abc import TaskGroup

from gateway.domain.audit import CallRecord
from gateway.errors import AuditUnavailable, GatewayError
from gateway.store.audit_chain import START, AuditRow, audit_id, link, now_us, storable
from gateway.store.connect import Connection, Statement, connect_app

log = structlog.get_logger(__name__)

_APPEND = """
select append_audit(
    $1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::text[], $7::text[], $8::text[], $9::text[],
    $10::text[], $11::text[], $12::text[], $13::bytea[], $14::integer[], $15::bigint[], $16::bigint[], $17::text[],
    $18::bytea[]
)
"""
_LARGEST_GROUP = 256
_MOST_CHAINS = 10_000
_COMMIT_S = 10.0
_CLOSE_S = 5.0

_AWAY = (GatewayError, asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError)

_Waiting = tuple[CallRecord, "asyncio.Future[None]"]


class _Chains:
    """The ends of this connection's chains, one per tenant."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._writer = secrets.token_hex(8)
        self._mark = secrets.token_hex(4)[:5]
        self._written = 0
        self._ends: dict[str, tuple[int, bytes]] = {}

    @property
    def is_full(self) -> bool:
        """Whether so many tenants were seen that starting over is cheaper than remembering them."""
        return len(self._ends) >= _MOST_CHAINS

    def columns(self, records: Sequence[CallRecord]) -> list[list[object]]:
        """The group as columns, MACs last; the chains move on."""
        at_us = now_us()
        rows = [self._add(record, at_us) for record in records]
        return [list(column) for column in zip(*rows, strict=True)]

    def _add(self, record: CallRecord, at_us: int) -> tuple[object, ...]:
        tenant = str(record.tenant)
        seq, previous = self._ends.get(tenant, (0, START))
        self._written += 1
        row = AuditRow(
            tenant,
            audit_id(at_us, f"{self._mark}{self._written & 0xFFFF:04x}"),
            self._writer,
            seq + 1,
            at_us,
            record.kind.value,
            storable(record.principal),
            storable(record.subject),
            "call",
            storable(record.tool),
            storable(record.outcome),
            storable(record.correlation_id),
            record.digest,
            record.status,
            record.duration_us,
            record.result_bytes,
            "{}",
        )
        mac = link(self._key, previous, row)
        self._ends[tenant] = (seq + 1, mac)
        return (*row, mac)


class AuditWriter:
    """Writes call records; open it once per replica."""

    def __init__(self, url: str, *, chain_key: bytes) -> None:
        self._url = url
        self._chain_key = chain_key
        self._waiting: deque[_Waiting] = deque()
        self._wake = asyncio.Event()
        self._ended = asyncio.Event()
        self._is_open = False
        self._connection: Connection | None = None
        self._statement: Statement | None = None
        self._chains = _Chains(chain_key)
        self._tasks: TaskGroup | None = None

    async def __aenter__(self) -> Self:
        self._tasks = await anyio.create_task_group().__aenter__()
        self._tasks.start_soon(self._run)
        self._is_open = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """What waits is still written, if that takes no more than a few seconds."""
        self._is_open = False
        self._wake.set()
        with anyio.move_on_after(_CLOSE_S, shield=True):
            await self._ended.wait()
            if self._connection is not None:
                await self._connection.close()
        self._drop_connection()
        if self._tasks is not None:
            self._tasks.cancel_scope.cancel()
            await self._tasks.__aexit__(None, None, None)

    async def write(self, record: CallRecord) -> None:
        """Return when the record is committed. A caller that is cancelled while it waits does not take it back.

        Raises:
            AuditUnavailable: it could not be committed, or nobody knows whether it was.
        """
        if not self._is_open:
            raise _unavailable()
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((record, written))
        self._wake.set()
        await written

    async def _run(self) -> None:
        """Write group after group until the writer is closed and nothing waits."""
        try:
            while self._is_open or self._waiting:
                if not self._waiting:
                    self._wake.clear()
                    await self._wake.wait()
                    continue
                group = [self._waiting.popleft() for _ in range(min(len(self._waiting), _LARGEST_GROUP))]
                try:
                    await self._write_group(group)
                except Exception:
                    log.exception("audit_group_failed", entries=len(group))
                    self._drop_connection()
                finally:
                    _fail(group)
        finally:
            self._is_open = False
            _fail(self._waiting)
            self._ended.set()

    async def _write_group(self, group: Sequence[_Waiting]) -> None:
        try:
            async with asyncio.timeout(_COMMIT_S):
                statement = await self._ready()
                await statement.fetchval(*self._chains.columns([record for record, _ in group]))
        except (asyncpg.DataError, asyncpg.IntegrityConstraintViolationError):
            # Nothing of the group is stored. One record is at fault: it must not cost the others their answers.
            self._drop_connection()
            if len(group) > 1:
                for alone in group:
                    await self._write_group([alone])
        except _AWAY as error:
            log.warning("audit_unavailable", entries=len(group), error=type(error).__name__)
            self._drop_connection()
        else:
            for _, written in group:
                if not written.done():
                    written.set_result(None)

    async def _ready(self) -> Statement:
        """The prepared statement, on a connection that is believed to live."""
        if self._statement is None or self._connection is None or self._connection.is_closed():
            self._drop_connection()
            self._connection = await connect_app(self._url)
            self._statement = await self._connection.prepare(_APPEND)
        if self._chains.is_full:
            self._chains = _Chains(self._chain_key)
        return self._statement

    def _drop_connection(self) -> None:
        """The next group gets a connection and chains of its own."""
        if self._connection is not None:
            self._connection.terminate()
        self._connection = self._statement = None
        self._chains = _Chains(self._chain_key)


def _fail(waiting: Iterable[_Waiting]) -> None:
    """Tell whoever still waits."""
    for _, written in waiting:
        if not written.done():
            written.set_exception(_unavailable())


def _unavailable() -> AuditUnavailable:
    return AuditUnavailable("The audit entry could not be stored.")
