"""Durable tasks: stored before the client receives their id, leased to the replica that runs them, and encrypted.

Every read by a client is limited to the tasks of its owner: tenant, subject and profile. Unknown tasks, expired tasks
and tasks of other owners cause the same error. If a replica stops before it has recorded the intent of the call, the
task has changed nothing, and another replica restarts it. After the intent, the outcome is unknown, and the task fails.
"""

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

import msgspec
import structlog

from gateway.catalog.calls.limits import (
    MAX_OPEN_EACH,
    MAX_OPEN_TASKS,
    MAX_ROUNDS_BYTES,
    MAX_STORED_TASKS,
    MAX_TASKS_BYTES,
    TASK_RETRY_S,
)
from gateway.domain.calls.mcp_tasks import (
    AskedKind,
    McpTask,
    TaskCall,
    TaskError,
    TaskOutcome,
    TaskOwner,
    TaskRounds,
    TaskState,
)
from gateway.domain.events import Event, TaskChanged
from gateway.domain.identifiers import KeyId, TaskId, TenantId, new_task_id
from gateway.errors import BadInput, HandlerFailed, LimitExceeded, NotFound, RedisUnavailable
from gateway.store import jobs, secrets
from gateway.store.calls import mcp_tasks
from gateway.store.calls.mcp_tasks import NewTask, StoredTask
from gateway.store.encryption import EnvelopeCipher
from gateway.store.engine import Db, Store
from gateway.store.jobs import Job

log = structlog.get_logger(__name__)

KIND: Final = "mcp_task"
LIFETIME: Final = timedelta(hours=24)
"""Lifetime of a task from its creation, result included. A running task is cancelled when it ends."""
_ID: Final = re.compile(r"tsk_[A-Za-z0-9_-]{32}")
_UNKNOWN: Final = TaskError(
    code=-32603,
    message="the replica that ran this task has stopped; the outcome of the call is unknown, and it is not repeated",
    data={"code": "call.replica_lost"},
)

_Sealed = TypeVar("_Sealed", TaskCall, TaskRounds, TaskOutcome)
IsValidResponse = Callable[[AskedKind, object], bool]
"""True if the object is a valid response to an input request of this kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskDraft:
    """A task to create; `has_begun` is True if an intent of its running call was recorded."""

    owner: TaskOwner
    key: KeyId
    tool: str
    correlation_id: str
    call: TaskCall
    rounds: TaskRounds
    has_begun: bool = False
    approval: Mapping[str, str] | None = None


class TaskRecords:
    """The tasks of all tenants; `publish` sends an event to all replicas."""

    def __init__(
        self,
        store: Store,
        cipher: EnvelopeCipher,
        publish: Callable[[Event], Awaitable[None]],
        *,
        lease: timedelta = timedelta(seconds=30),
    ) -> None:
        self._store = store
        self._cipher = cipher
        self._publish = publish
        self.lease = lease
        self.ended = Counter[str]()
        """Tasks that this replica ended, by state."""

    async def create(self, draft: TaskDraft, *, holder: str) -> McpTask:
        """Store a task with a lease for its holder; it is committed when this returns.

        Raises:
            LimitExceeded: the subject or the tenant has too many tasks.
        """
        tenant, task = draft.owner.tenant, new_task_id()
        async with self._store.transaction(tenant) as db:
            await _check_limits(draft.owner, db)
            key, wrapped = await secrets.tenant_key(tenant, db, self._cipher)
            row = NewTask(
                id=task,
                subject=draft.owner.subject,
                profile=draft.owner.profile,
                key=draft.key,
                tool=draft.tool,
                correlation_id=draft.correlation_id,
                holder=holder,
                has_begun=draft.has_begun,
                data_key=key,
                call=self._seal(tenant, wrapped, task, draft.call),
                rounds=self._seal_rounds(tenant, wrapped, task, draft.rounds),
                approval=draft.approval,
            )
            await mcp_tasks.insert(tenant, db, row, lease=self.lease, lifetime=LIFETIME)
            stored = await _owned(draft.owner, db, task)
            await _schedule(tenant, db, task, stored.leased_until)
        return self._open(tenant, stored)

    async def get(self, owner: TaskOwner, task: str) -> McpTask:
        """Return a task of the owner.

        Raises:
            NotFound: the task is unknown, expired, or belongs to another owner.
        """
        async with self._store.transaction(owner.tenant) as db:
            return self._open(owner.tenant, await _owned(owner, db, task))

    async def owned(self, owner: TaskOwner, wanted: Sequence[str]) -> Sequence[TaskId]:
        """Return the ids among the given ones that are tasks of the owner."""
        task_ids = {TaskId(task) for task in wanted if _ID.fullmatch(task)}
        async with self._store.transaction(owner.tenant) as db:
            return await mcp_tasks.owned(owner.tenant, db, task_ids, subject=owner.subject, profile=owner.profile)

    async def answer(
        self,
        owner: TaskOwner,
        task: str,
        answers: Mapping[str, object],
        *,
        is_valid_response: IsValidResponse,
        holder: str,
    ) -> McpTask | None:
        """Store responses to input requests. Return the task with a lease for its next round; None while requests are
        open.

        Raises:
            NotFound: the task is unknown, expired, or belongs to another owner.
            BadInput: a response does not match its input request, or the responses together are too large.
        """
        tenant = owner.tenant
        async with self._store.transaction(tenant) as db:
            stored = await _owned(owner, db, task, is_locked=True)
            if stored.state is not TaskState.INPUT_REQUIRED:
                return None
            rounds = self._unseal(tenant, stored, stored.rounds, TaskRounds)
            received = {key: answers[key] for key in rounds.questions if key in answers}
            for key, given in received.items():
                if not is_valid_response(rounds.questions[key].kind, given):  # guard: task-answer-form
                    raise BadInput(f"inputResponses/{key[:64]} does not match its request")
            if not received:
                return None
            remaining = {key: question for key, question in rounds.questions.items() if key not in received}
            merged = msgspec.convert({**rounds.answers, **received}, dict[str, dict[str, Any]])
            rounds = TaskRounds(answers=merged, memory=rounds.memory, questions=remaining)
            try:
                sealed = self._seal_rounds(tenant, stored.wrapped, stored.id, rounds)
            except HandlerFailed as error:
                raise BadInput(error.message) from None
            state = TaskState.INPUT_REQUIRED if remaining else TaskState.WORKING
            await mcp_tasks.answer(tenant, db, stored.id, rounds=sealed, state=state)
            claimed = None if remaining else await self._lease(tenant, db, stored, holder)
        await self._announce(tenant, stored.id)
        return claimed

    async def cancel(self, owner: TaskOwner, task: str) -> bool:
        """Cancel a task and return True; False if it has already ended.

        Raises:
            NotFound: the task is unknown, expired, or belongs to another owner.
        """
        tenant = owner.tenant
        async with self._store.transaction(tenant) as db:
            stored = await _owned(owner, db, task, is_locked=True)
            is_done = await self._end(
                tenant, db, stored, TaskState.CANCELLED, outcome=None, message="cancelled by the client"
            )
        if is_done:
            await self._announce(tenant, stored.id)
        return is_done

    async def begin(self, tenant: TenantId, task: TaskId, *, holder: str) -> bool:
        """Record that the call may have effects from now on; False if the holder has lost the lease."""
        async with self._store.transaction(tenant) as db:
            return await mcp_tasks.begin(tenant, db, task, holder=holder)

    async def wait(self, tenant: TenantId, task: TaskId, *, holder: str, approval: Mapping[str, str] | None) -> None:
        """Record the approval for which the holder's call waits, or that it no longer waits."""
        async with self._store.upkeep(tenant) as db:
            is_stored = await mcp_tasks.wait(tenant, db, task, holder=holder, approval=approval)
        if is_stored:
            await self._announce(tenant, task)

    async def renew(self, tenant: TenantId, task: TaskId, *, holder: str) -> bool:
        """Extend the holder's lease; False if the task was cancelled, expired or taken by another holder."""
        async with self._store.upkeep(tenant) as db:
            until = await mcp_tasks.lease(tenant, db, task, holder=holder, until=self.lease)
            if until is not None:
                await _schedule(tenant, db, task, until)
        return until is not None

    async def postpone(self, tenant: TenantId, task: TaskId, *, holder: str, seconds: float) -> None:
        """Release the holder's lease; a replica takes the task after this time."""
        async with self._store.upkeep(tenant) as db:
            due = await mcp_tasks.postpone(tenant, db, task, holder=holder, to=timedelta(seconds=seconds))
            if due is not None:
                await _schedule(tenant, db, task, due)

    async def park(self, task: McpTask, rounds: TaskRounds) -> None:
        """End a round whose call waits for responses to input requests.

        Raises:
            HandlerFailed: the state of the call is too large, or contains a value that is not JSON.
        """
        tenant = task.owner.tenant
        async with self._store.upkeep(tenant) as db:
            stored = await mcp_tasks.get(tenant, db, task.id, is_locked=True)
            if stored is None:
                return
            sealed = self._seal_rounds(tenant, stored.wrapped, stored.id, rounds)
            if not await mcp_tasks.park(tenant, db, task.id, holder=task.holder, rounds=sealed):
                return
            await _schedule(tenant, db, task.id, task.expires_at)
        await self._announce(tenant, task.id)

    async def end(self, task: McpTask, state: TaskState, outcome: TaskOutcome | None, *, message: str = "") -> bool:
        """Store the end of the holder's task; False if it has already ended, or another holder has it."""
        tenant = task.owner.tenant
        async with self._store.upkeep(tenant) as db:
            stored = await mcp_tasks.get(tenant, db, task.id, is_locked=True)
            if stored is None or stored.holder != task.holder:  # guard: task-end-fenced
                return False
            if not await self._end(tenant, db, stored, state, outcome=outcome, message=message):
                return False
        await self._announce(tenant, task.id)
        return True

    async def take_due(self, tenant: TenantId, task: TaskId, *, holder: str) -> McpTask | None:
        """Handle a task whose job is due: delete it if it has expired; fail it, or lease it, if its holder has stopped.

        Returns the leased task if it must run again from its start.
        """
        async with self._store.upkeep(tenant) as db:
            stored = await mcp_tasks.get(tenant, db, task, is_locked=True)
            if stored is None:
                if await mcp_tasks.remove_expired(tenant, db, task):
                    await jobs.remove(tenant, db, task)
                return None
            if stored.state is not TaskState.WORKING:
                await _schedule(tenant, db, task, stored.expires_at)
                return None
            if stored.is_leased:  # guard: task-lease-respected
                await _schedule(tenant, db, task, stored.leased_until)
                return None
            if not stored.has_begun:  # guard: task-run-once
                return await self._lease(tenant, db, stored, holder)
            await self._end(
                tenant, db, stored, TaskState.FAILED, outcome=TaskOutcome(error=_UNKNOWN), message=_UNKNOWN.message
            )
        await self._announce(tenant, task)
        return None

    async def _lease(self, tenant: TenantId, db: Db, stored: StoredTask, holder: str) -> McpTask:
        until = await mcp_tasks.take(tenant, db, stored.id, holder=holder, until=self.lease)
        await _schedule(tenant, db, stored.id, until or stored.expires_at)
        found = await mcp_tasks.get(tenant, db, stored.id)
        return self._open(tenant, found or stored)

    async def _end(
        self,
        tenant: TenantId,
        db: Db,
        stored: StoredTask,
        state: TaskState,
        *,
        outcome: TaskOutcome | None,
        message: str,
    ) -> bool:
        sealed = None if outcome is None else self._seal(tenant, stored.wrapped, stored.id, outcome)
        is_done = await mcp_tasks.end(tenant, db, stored.id, state=state, message=message, outcome=sealed)
        if is_done:
            self.ended[state.value] += 1
            await _schedule(tenant, db, stored.id, stored.expires_at)
        return is_done

    async def _announce(self, tenant: TenantId, task: TaskId) -> None:
        """Publish the change. If the event is lost, clients find the change by polling, and the holder when it renews
        its lease.
        """
        try:
            await self._publish(TaskChanged(tenant=tenant, task=task))
        except RedisUnavailable:
            log.warning("event_lost", kind=TaskChanged.__name__, tenant_id=tenant)

    def _seal(
        self, tenant: TenantId, wrapped: bytes, task: TaskId, value: TaskCall | TaskRounds | TaskOutcome
    ) -> bytes:
        context = mcp_tasks.context_of(task, type(value).__name__)
        return self._cipher.seal(tenant, wrapped, msgspec.msgpack.encode(value), *context)

    def _seal_rounds(self, tenant: TenantId, wrapped: bytes, task: TaskId, rounds: TaskRounds) -> bytes:
        try:
            size = len(msgspec.json.encode(rounds))
        except (TypeError, ValueError) as error:
            raise HandlerFailed("a stored value of the call is not JSON") from error
        if size > MAX_ROUNDS_BYTES:  # guard: task-rounds-bounded
            raise HandlerFailed(
                f"responses and stored values of the task are larger than {MAX_ROUNDS_BYTES} bytes together"
            )
        return self._seal(tenant, wrapped, task, rounds)

    def _unseal(self, tenant: TenantId, stored: StoredTask, sealed: bytes, kind: type[_Sealed]) -> _Sealed:
        context = mcp_tasks.context_of(stored.id, kind.__name__)
        plain = self._cipher.open(tenant, stored.wrapped, sealed, *context)
        return msgspec.msgpack.decode(plain, type=kind)

    def _open(self, tenant: TenantId, stored: StoredTask) -> McpTask:
        return McpTask(
            id=stored.id,
            owner=TaskOwner(tenant=tenant, subject=stored.subject, profile=stored.profile),
            key=stored.key,
            tool=stored.tool,
            correlation_id=stored.correlation_id,
            state=stored.state,
            message=stored.message,
            created_at=stored.created_at,
            updated_at=stored.updated_at,
            expires_at=stored.expires_at,
            holder=stored.holder,
            call=self._unseal(tenant, stored, stored.call, TaskCall),
            rounds=self._unseal(tenant, stored, stored.rounds, TaskRounds),
            outcome=None if stored.outcome is None else self._unseal(tenant, stored, stored.outcome, TaskOutcome),
            approval=stored.approval,
        )


async def _check_limits(owner: TaskOwner, db: Db) -> None:
    used = await mcp_tasks.usage(owner.tenant, db, subject=owner.subject)
    if used.open_of_subject >= MAX_OPEN_EACH:  # guard: tasks-of-one-subject
        raise _limit_exceeded(f"too many open tasks of this subject (limit {MAX_OPEN_EACH})")
    if used.open >= MAX_OPEN_TASKS:
        raise _limit_exceeded(f"too many open tasks of this tenant (limit {MAX_OPEN_TASKS})")
    if used.stored >= MAX_STORED_TASKS or used.size >= MAX_TASKS_BYTES:  # guard: tasks-stored
        raise _limit_exceeded(
            f"too many stored tasks of the last {LIFETIME} (limit {MAX_STORED_TASKS} tasks and {MAX_TASKS_BYTES} bytes"
            " per tenant)"
        )


def _limit_exceeded(text: str) -> LimitExceeded:
    return LimitExceeded(f"{text}; cancel some, or wait until they end", limit="tasks", retry_after_s=TASK_RETRY_S)


async def _owned(owner: TaskOwner, db: Db, task: str, *, is_locked: bool = False) -> StoredTask:
    stored = None
    if _ID.fullmatch(task):  # guard: task-id-form
        stored = await mcp_tasks.get(owner.tenant, db, TaskId(task), is_locked=is_locked)
    # guard: task-owner
    if stored is None or (stored.subject, stored.profile) != (owner.subject, owner.profile):
        raise NotFound("there is no such task")
    return stored


async def _schedule(tenant: TenantId, db: Db, task: TaskId, due_at: datetime) -> None:
    await jobs.schedule(tenant, db, Job(tenant=tenant, id=task, kind=KIND, due_at=due_at))
