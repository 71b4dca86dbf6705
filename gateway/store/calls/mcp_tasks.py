"""MCP tasks of clients: encrypted calls and results, and the leases under which replicas run the calls.

PostgreSQL's clock decides on leases and lifetimes, so the clocks of replicas may differ. A change of a running task
names the holder of its lease; the change fails if another holder has taken the lease.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, RowMapping, Select, delete, func, null, select, update
from sqlalchemy import insert as insert_into

from gateway.domain.calls.mcp_tasks import OPEN_STATES, TaskState
from gateway.domain.identifiers import KeyId, TaskId, TenantId
from gateway.store.calls.tables import mcp_tasks as tasks
from gateway.store.engine import Db
from gateway.store.tables import data_keys

_OPEN = [state.value for state in OPEN_STATES]
_ARE_OPEN = tasks.c.state.in_(_OPEN)


SEALED: Mapping[str, str] = {"call": "TaskCall", "rounds": "TaskRounds", "outcome": "TaskOutcome"}
"""The encrypted columns, each with the name of its content in the encryption context."""
_KIND = "mcp_task"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTask:
    """A task as stored; `call`, `rounds` and `outcome` are encrypted with the data key in `wrapped`."""

    id: TaskId
    subject: str
    profile: str
    key: KeyId
    tool: str
    correlation_id: str
    state: TaskState
    message: str
    created_at: datetime
    updated_at: datetime
    expires_at: datetime
    holder: str
    leased_until: datetime
    has_begun: bool
    is_leased: bool
    wrapped: bytes
    call: bytes
    rounds: bytes
    outcome: bytes | None
    approval: Mapping[str, str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTask:
    """A task to store, with a lease for its holder."""

    id: TaskId
    subject: str
    profile: str
    key: KeyId
    tool: str
    correlation_id: str
    holder: str
    has_begun: bool
    data_key: str
    call: bytes
    rounds: bytes
    approval: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskUsage:
    """Counts of a tenant's tasks: open tasks of one subject, all open tasks, all stored tasks, and their bytes."""

    open_of_subject: int
    open: int
    stored: int
    size: int


async def insert(tenant: TenantId, db: Db, task: NewTask, *, lease: timedelta, lifetime: timedelta) -> None:
    """Add a working task."""
    row = {"tenant_id": tenant, "key_id": task.key, "data_key_id": task.data_key, **_row_values(task)}
    times = {"expires_at": func.now() + lifetime, "leased_until": func.now() + lease}
    await db.execute(insert_into(tasks).values(state=TaskState.WORKING.value, message="", **row, **times))


async def get(tenant: TenantId, db: Db, task: TaskId, *, is_locked: bool = False) -> StoredTask | None:
    """The tenant's task with this id, unless it has expired; `is_locked` locks the row until the transaction ends."""
    query = _select_tasks().where(*_matches_id(tenant, task), tasks.c.expires_at > func.now())
    rows = await db.execute(query.with_for_update(of=tasks) if is_locked else query)
    row = rows.mappings().one_or_none()
    if row is None:
        return None
    columns = {name: row[name] for name in StoredTask.__slots__ if name not in {"key", "state"}}
    return StoredTask(key=KeyId(row["key_id"]), state=TaskState(row["state"]), **columns)


async def owned(tenant: TenantId, db: Db, ids: Collection[TaskId], *, subject: str, profile: str) -> Sequence[TaskId]:
    """The tasks among `ids` that belong to the subject and profile, in order."""
    # guard: listened-tasks-owned
    belongs = (tasks.c.tenant_id == tenant, tasks.c.subject == subject, tasks.c.profile == profile)
    found = select(tasks.c.id).where(*belongs, tasks.c.id.in_(ids), tasks.c.expires_at > func.now())
    return [TaskId(task) for task in (await db.execute(found.order_by(tasks.c.id))).scalars()]


async def usage(tenant: TenantId, db: Db, *, subject: str) -> TaskUsage:
    """Count the stored tasks of a tenant, and the open tasks of a subject."""
    sizes = (func.octet_length(part) for part in (tasks.c.call, tasks.c.rounds, func.coalesce(tasks.c.outcome, b"")))
    query = select(
        func.count().filter(_ARE_OPEN, tasks.c.subject == subject).label("of_subject"),
        func.count().filter(_ARE_OPEN).label("open"),
        func.count().label("stored"),
        func.coalesce(func.sum(sum(sizes, start=0)), 0).label("size"),
    ).where(tasks.c.tenant_id == tenant)
    row = (await db.execute(query)).mappings().one()
    of_subject, open_total, stored, size = [int(value) for value in row.values()]
    return TaskUsage(open_of_subject=of_subject, open=open_total, stored=stored, size=size)


async def begin(tenant: TenantId, db: Db, task: TaskId, *, holder: str) -> bool:
    """Record that the call may have effects from now on; False if the holder has lost the lease."""
    return await _change(tenant, db, task, *_is_held(holder), values={"has_begun": True}) is not None


async def wait(tenant: TenantId, db: Db, task: TaskId, *, holder: str, approval: Mapping[str, str] | None) -> bool:
    """Store the approval for which the call waits, or None; False if the holder has lost the lease."""
    values = {"approval": null() if approval is None else dict(approval), **_change_columns()}
    return await _change(tenant, db, task, *_is_held(holder), values=values) is not None


async def lease(tenant: TenantId, db: Db, task: TaskId, *, holder: str, until: timedelta) -> datetime | None:
    """Extend the holder's lease, and return its end; None if the holder has lost the lease."""
    return await _change(tenant, db, task, *_is_held(holder), values={"leased_until": func.now() + until})


async def take(tenant: TenantId, db: Db, task: TaskId, *, holder: str, until: timedelta) -> datetime | None:
    """Assign a working task to a new holder and return the end of its lease; the caller has locked the row."""
    values = {"holder": holder, "leased_until": func.now() + until, "has_begun": False, "approval": null()}
    return await _change(tenant, db, task, tasks.c.state == TaskState.WORKING.value, values=values)


async def postpone(tenant: TenantId, db: Db, task: TaskId, *, holder: str, to: timedelta) -> datetime | None:
    """Release the holder's lease; any replica may run the task after the time `to`."""
    return await _change(tenant, db, task, *_is_held(holder), values={"holder": "", "leased_until": func.now() + to})


async def park(tenant: TenantId, db: Db, task: TaskId, *, holder: str, rounds: bytes) -> bool:
    """Store a round that waits for input of the client; False if the holder has lost the lease."""
    values = {
        "state": TaskState.INPUT_REQUIRED.value,
        "holder": "",
        "has_begun": False,
        "rounds": rounds,
        **_change_columns(),
    }
    return await _change(tenant, db, task, *_is_held(holder), values=values) is not None


async def answer(tenant: TenantId, db: Db, task: TaskId, *, rounds: bytes, state: TaskState) -> None:
    """Store the client's input for a task, and its next state; the caller has locked the row."""
    await _change(tenant, db, task, values={"rounds": rounds, "state": state.value, **_change_columns()})


async def end(tenant: TenantId, db: Db, task: TaskId, *, state: TaskState, message: str, outcome: bytes | None) -> bool:
    """End an open task; False if it has already ended."""
    values = {"state": state.value, "message": message, "outcome": outcome, "holder": "", **_change_columns()}
    return await _change(tenant, db, task, _ARE_OPEN, values=values) is not None


async def remove_expired(tenant: TenantId, db: Db, task: TaskId) -> bool:
    """Delete an expired task; True if it was deleted."""
    deleted = delete(tasks).where(*_matches_id(tenant, task), tasks.c.expires_at <= func.now())
    await db.execute(deleted)
    left = select(func.count()).select_from(tasks).where(*_matches_id(tenant, task))
    return int((await db.execute(left)).scalar_one()) == 0


def sealed_context(row: RowMapping, column: str) -> tuple[str, ...]:
    """Callback for key rotation: the encryption context of a column of a stored row."""
    return context_of(row["id"], SEALED[column])


def context_of(task: str, content: str) -> tuple[str, ...]:
    """The encryption context of a task's call, rounds or outcome."""
    return (_KIND, task, content)


def _select_tasks() -> Select[*tuple[object, ...]]:
    joined = (data_keys.c.tenant_id == tasks.c.tenant_id) & (data_keys.c.id == tasks.c.data_key_id)
    is_leased = ((tasks.c.holder != "") & (tasks.c.leased_until > func.now())).label("is_leased")
    return select(*tasks.c, data_keys.c.wrapped, is_leased).join_from(tasks, data_keys, joined)


def _matches_id(tenant: TenantId, task: TaskId) -> tuple[ColumnElement[bool], ...]:
    return (tasks.c.tenant_id == tenant, tasks.c.id == task)


def _is_held(holder: str) -> tuple[ColumnElement[bool], ...]:
    """The conditions under which a holder may change its task."""
    return (tasks.c.holder == holder, tasks.c.state == TaskState.WORKING.value)  # guard: task-lease-held


def _change_columns() -> Mapping[str, Any]:
    return {"updated_at": func.now()}


def _row_values(task: NewTask) -> dict[str, Any]:
    return {name: getattr(task, name) for name in NewTask.__slots__ if name not in {"key", "data_key"}}


async def _change(
    tenant: TenantId, db: Db, task: TaskId, *conditions: ColumnElement[bool], values: Mapping[str, Any]
) -> datetime | None:
    """Change a task on these conditions; return the end of its lease, or None if they are not met."""
    changed = update(tasks).where(*_matches_id(tenant, task), tasks.c.expires_at > func.now(), *conditions)
    found = await db.execute(changed.values(**values).returning(tasks.c.leased_until))
    row = found.one_or_none()
    return None if row is None else row[0]
