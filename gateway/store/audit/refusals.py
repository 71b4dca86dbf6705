"""Refusals of known principals in the audit trail, written in the background: a refused request waits for no entry.

The first refusals of a rule are entries of their own; further equal ones of the minute become one entry with a count,
so a flood of refused requests writes few rows. A credential that matches no key has no tenant: its refusal is counted
in a metric, and in no trail. An entry that cannot be written is counted, and written with the next count.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import anyio
import structlog
from msgspec.structs import replace

from gateway.domain.audit import CallRecord, RuleKind, describe_rule, refused
from gateway.domain.fairness.task_supervisor import TaskSupervisor
from gateway.domain.identifiers import TenantId
from gateway.errors import AuditUnavailable, DecidingRule
from gateway.store.audit.export_lines import moment
from gateway.store.audit.hash_chain import now_us
from gateway.store.audit.limits import (
    CLOSE_S,
    MAX_COUNTED_TENANTS,
    MAX_OF_A_PRINCIPAL,
    MAX_OF_A_TENANT,
    MAX_PENDING,
    MAX_PENDING_OF_A_TENANT,
    MAX_WRITES,
    SETTLE_S,
    TALLY_S,
)
from gateway.telemetry.log_context import LABELS, describe_sender

log = structlog.get_logger(__name__)

FIRST = 10
"""Equal refusals of a minute that are entries of their own; enough for the attempts of a person, or of an agent."""
_OTHERS_PRINCIPAL = "others"


class _Equal(NamedTuple):
    """The values by which refusals of a tenant are equal."""

    principal: str
    action: str
    outcome: str
    kind: str
    name: str


@dataclass(slots=True)
class _Count:
    """Equal refusals of a minute: `entries` have entries of their own, `count` are the others."""

    rule: DecidingRule
    entries: int = 0
    count: int = 0
    first_us: int = 0
    last_us: int = 0

    def add(self, times: int = 1) -> None:
        self.last_us = now_us()
        self.first_us = self.first_us or self.last_us
        self.count += times


class RefusalTally:
    """The refusals of this replica; open it with `async with` while the audit writer is open.

    `write` is the writer's own method, so the tally is also the sink of the records that are no refusals.
    """

    def __init__(self, write: Callable[[CallRecord], Coroutine[Any, Any, None]], *, pause_s: float = TALLY_S) -> None:
        self.write = write
        self._pause_s = pause_s
        self._counted: dict[TenantId, dict[_Equal, _Count]] = {}
        self._queue: deque[tuple[CallRecord, DecidingRule]] = deque()
        self._pending: Counter[TenantId] = Counter()
        self._is_queued = asyncio.Event()
        self._is_written = asyncio.Event()
        self._tasks = TaskSupervisor()
        self.noted: Counter[tuple[str, ...]] = Counter()
        """Refusals since the start, by caller (`tenant` or `stranger`) and kind of the rule."""

    @property
    def failing(self) -> Sequence[str]:
        """Names of its loops that fail again and again."""
        return self._tasks.failing

    async def __aenter__(self) -> Self:
        self._tasks.open(self._write_queued, self._flush_counted)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop, and write all refusals for at most 3 s."""
        with anyio.move_on_after(CLOSE_S, shield=True):
            while self._pending:
                await self._is_written.wait()
            await self.flush()
        await self._tasks.close()

    def note(self, record: CallRecord, rule: DecidingRule, reason: str) -> None:
        """Note the refusal of a request; it becomes an entry, or is counted. Never fails, and waits for nothing.

        A record without a tenant is a stranger's. One without a correlation id gets that of the current request.
        """
        tenant = record.tenant  # a stranger's refusal takes the same steps, so that its time reveals no key
        self.noted["tenant" if tenant else "stranger", rule.kind] += 1
        counted = self._count_of(record, rule)
        if counted is None:
            return
        is_flood = counted.entries >= FIRST or self._pending[tenant] >= MAX_PENDING_OF_A_TENANT
        if is_flood or self._pending.total() >= MAX_PENDING:  # guard: refusals-counted
            counted.add()
            return
        counted.entries += 1
        self._pending[tenant] += 1
        self._queue.append((_with_request(record, rule, reason), rule))
        self._is_queued.set()

    async def settle(self, tenant: TenantId) -> None:
        """Wait at most 1 s until the tenant's noted entries are written, so that a reader finds its last refusals."""
        with anyio.move_on_after(SETTLE_S):
            while self._pending[tenant]:
                await self._is_written.wait()

    async def flush(self) -> None:
        """Write one entry for each counted refusal; a refusal whose entry cannot be written stays counted."""
        flushed, self._counted = self._counted, {}
        counts = [
            (tenant, *one) for tenant, counted in flushed.items() if tenant for one in counted.items() if one[1].count
        ]
        while counts:
            begun, counts = counts[:MAX_WRITES], counts[MAX_WRITES:]
            try:
                async with anyio.create_task_group() as group:
                    for one in begun:
                        group.start_soon(self._write_count, *one)
            except BaseException:  # the writer stores what it has, also after a cancellation
                for tenant, equal, counted in counts:
                    record = refused(tenant, equal.principal, equal.action, equal.outcome)
                    self._add(record, counted.rule, counted.count)
                raise

    def _count_of(self, record: CallRecord, rule: DecidingRule) -> _Count | None:
        """Return the refusals that equal this one; None beyond the limit of tenants."""
        counted = self._counted.get(record.tenant)
        if counted is None:
            if len(self._counted) >= MAX_COUNTED_TENANTS:  # guard: refusals-bounded
                return None
            counted = self._counted[record.tenant] = {}
        # The name of a missing profile is the caller's own text, which would make every refusal another one.
        name = "" if rule.kind == RuleKind.PROFILE else rule.name  # guard: refusals-of-invented-names
        equal = _Equal(record.principal, record.action, record.outcome, rule.kind, name)
        if equal not in counted:
            is_first = rule.name == name
            if sum(one.principal == record.principal for one in counted) >= MAX_OF_A_PRINCIPAL:
                equal, is_first = equal._replace(name=""), False  # guard: refusals-of-a-principal-bounded
            count = _Count(rule if is_first else DecidingRule(rule.kind))
            if equal not in counted and len(counted) >= MAX_OF_A_TENANT:  # guard: refusals-of-a-tenant-bounded
                equal = equal._replace(principal=_OTHERS_PRINCIPAL, name="")
                count = _Count(DecidingRule(rule.kind), entries=FIRST)
            counted.setdefault(equal, count)
        return counted[equal]

    async def _flush_counted(self) -> None:
        while True:
            await anyio.sleep(self._pause_s)
            await self.flush()

    async def _write_queued(self) -> None:
        """Write each queued entry in a task of its own, so that none waits for another tenant's."""
        while True:
            await self._is_queued.wait()
            self._is_queued.clear()
            while self._queue:
                self._tasks.spawn(self._write_first, *self._queue.popleft())

    async def _write_first(self, record: CallRecord, rule: DecidingRule) -> None:
        try:
            if record.tenant:
                await self.write(record)
        except AuditUnavailable as error:
            self._add(record, rule, 1)
            log.warning("refusals_not_written", tenant_id=record.tenant, reason=error.message)
        finally:
            self._pending[record.tenant] -= 1
            if not self._pending[record.tenant]:
                del self._pending[record.tenant]
            self._is_written.set()
            self._is_written = asyncio.Event()

    async def _write_count(self, tenant: TenantId, equal: _Equal, counted: _Count) -> None:
        detail: dict[str, object] = {
            "count": counted.count,
            "first": moment(counted.first_us),
            "last": moment(counted.last_us),
            **describe_rule(counted.rule),
        }
        record = refused(tenant, equal.principal, equal.action, equal.outcome)
        try:
            await self.write(replace(record, detail=detail))
        except AuditUnavailable as error:
            self._add(record, counted.rule, counted.count)
            log.warning("refusals_not_written", tenant_id=tenant, reason=error.message)

    def _add(self, record: CallRecord, rule: DecidingRule, times: int) -> None:
        if (counted := self._count_of(record, rule)) is not None:
            counted.add(times)


def _with_request(record: CallRecord, rule: DecidingRule, reason: str) -> CallRecord:
    """Add the rule, and the facts of the current request."""
    detail = {**(record.detail or {}), **describe_rule(rule, reason)}
    describe_sender(detail)
    labels = LABELS.get()
    named = record.correlation_id or ("" if labels is None else labels.correlation_id)
    return replace(record, correlation_id=named, detail=detail)
