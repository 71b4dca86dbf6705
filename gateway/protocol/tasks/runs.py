"""Runs of tasks on this replica: started inline or from their rows, leased while they run, and settled at their end.

A call whose client declared the extension runs in a separate asyncio task. If it ends or needs a client response within
`INLINE_S`, its request responds as usual. Otherwise its row is committed, and the response is the task. A tool that
requires tasks has its row before it starts. The lease is renewed until the end; a run that lost it stops, and cannot
record an intent.
"""

import math
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Final, Protocol, Self

import anyio
import structlog
from mcp_types import ClientCapabilities

from gateway.calls.pipeline import CallPipeline
from gateway.catalog.calls.mcp_tasks import TaskDraft, TaskRecords
from gateway.domain.calls.mcp_tasks import McpTask, TaskCall, TaskOutcome, TaskRounds, TaskState
from gateway.domain.events import TaskChanged
from gateway.domain.fairness.task_supervisor import TaskSupervisor
from gateway.domain.identifiers import KeyId, TaskId, TenantId, mint
from gateway.domain.tenancy.principals import Principal
from gateway.errors import (
    Conflict,
    DatabaseUnavailable,
    Forbidden,
    GatewayError,
    HandlerFailed,
    LimitExceeded,
    NotFound,
    Unavailable,
)
from gateway.handlers.binding import BoundTool
from gateway.handlers.interfaces import InputRequired
from gateway.protocol.stateless.input_rounds import RoundState, StatelessPeer
from gateway.protocol.tasks.limits import CLOSING_S, INLINE_S, TASK_RETRY_S
from gateway.protocol.tasks.task_objects import failed_outcome, waiting_rounds
from gateway.protocol.tasks.visible_tasks import owner_of
from gateway.registry.connections.connections import Connections
from gateway.registry.registry import Registry

log = structlog.get_logger(__name__)

_RENEWALS: Final = 3
"""Number of renewals within the time of a lease."""

_RETRY_PAUSES_S: Final = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Seconds between attempts to store the end of a run."""

_TAKEN: Final = "the task has ended, or another replica runs it; nothing was sent"
_CLIENT_GONE: Final = "the client disconnected before it received the task"
_KEY_ENDED: Final = "the key that started the task was revoked, deleted or has expired"


class Authority(Protocol):
    """The lookup of a principal by its key."""

    async def principal_of(self, key: KeyId) -> Principal | None:
        """Return the principal of a key that is valid now."""
        ...


class TaskRun:
    """One run of a call that is a task or may become one, on this replica."""

    def __init__(
        self,
        registry: Registry,
        bound: BoundTool,
        arguments: Mapping[str, object],
        peer: StatelessPeer,
        *,
        correlation: str,
    ) -> None:
        self.registry = registry
        self.bound = bound
        self.arguments = arguments
        self.peer = peer
        self.correlation_id = correlation
        self.holder = mint("run")
        self.task: McpTask | None = None
        self.has_begun = False
        self.approval: Mapping[str, str] | None = None
        self.scope = anyio.CancelScope()
        self.done = anyio.Event()
        self.members: bytes | None = None
        self.raised: InputRequired | GatewayError | None = None
        self.ended_because = ""
        self.recorded = anyio.Event()
        self.lock = anyio.Lock()
        """Held while the row is inserted, so that an intent is recorded either in the row or, before it, in
        `has_begun`.
        """

    @property
    def draft(self) -> TaskDraft:
        """The task that this run becomes."""
        principal, declared = self.registry.principal, self.peer.capabilities
        capabilities = {} if declared is None else declared.model_dump(by_alias=True, exclude_none=True, mode="json")
        return TaskDraft(
            owner=owner_of(self.registry),
            key=principal.key,
            tool=self.bound.tool.name,
            correlation_id=self.correlation_id,
            call=TaskCall(arguments=dict(self.arguments), capabilities=capabilities),
            rounds=TaskRounds(answers=self.peer.answers, memory=self.peer.memory),
            has_begun=self.has_begun,
            approval=self.approval,
        )

    def result(self) -> bytes:
        """Return the members of the result.

        Raises:
            GatewayError, InputRequired: the call raised it.
        """
        if self.raised is not None:
            raise self.raised
        if self.members is None:
            raise Unavailable("this replica is shutting down", retry_after_s=TASK_RETRY_S)
        return self.members


class TaskRunner:
    """The runs of this replica; open it with `async with`, once, while store and bus are open."""

    def __init__(
        self,
        records: TaskRecords,
        calls: CallPipeline,
        connections: Connections,
        authority: Authority,
        *,
        inline_s: float = INLINE_S,
    ) -> None:
        self.records = records
        self.calls = calls
        self._connections = connections
        self._authority = authority
        self._inline_s = inline_s
        self._runs: dict[TaskId, TaskRun] = {}
        self._tasks = TaskSupervisor()

    def __len__(self) -> int:
        """Number of tasks that run on this replica."""
        return len(self._runs)

    async def __aenter__(self) -> Self:
        self._tasks.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._tasks.close()

    async def run(self, run: TaskRun, *, at_once: bool) -> bytes | McpTask:
        """Run a call: return the members of its result, or the task that it became.

        `at_once` makes it a task before it starts.

        Raises:
            LimitExceeded: the call has to be a task, and the owner has too many tasks.
            GatewayError, InputRequired: the call raised it before it became a task.
        """
        self._attach_peer(run)
        try:
            if not at_once:
                self._tasks.spawn(self._call, run)
                with anyio.move_on_after(self._inline_s):
                    await run.done.wait()
            if not run.done.is_set():
                self._tasks.spawn(self._record, run, at_once)  # a disconnect must not interrupt it
                await run.recorded.wait()
                if run.task is not None:
                    return run.task
                await run.done.wait()
        except BaseException:
            run.ended_because = _CLIENT_GONE
            run.scope.cancel()
            raise
        return run.result()

    async def resume(self, task: McpTask) -> None:
        """Run the next round of a task that this replica has leased, with the authority of the key that started it."""
        try:
            run = await self._prepare(task)
        except Unavailable:
            await self.records.postpone(task.owner.tenant, task.id, holder=task.holder, seconds=TASK_RETRY_S)
        except GatewayError as error:
            await self.records.end(task, TaskState.FAILED, failed_outcome(error, task), message=error.message)
        else:
            self._start(run, task)

    async def take_due(self, tenant: TenantId, task: str) -> None:
        """Handle a task whose lease or time has ended: the job of the scheduler."""
        taken = await self.records.take_due(tenant, TaskId(task), holder=mint("run"))
        if taken is not None:
            log.info("task_taken", tenant_id=tenant, task=task)
            await self.resume(taken)

    def note_change(self, event: TaskChanged) -> None:
        """Check the lease of a run whose task has changed: it may have been cancelled at another replica."""
        run = self._runs.get(event.task)
        if run is not None and self._tasks.is_open:
            self._tasks.spawn(self._check, run)

    def end_key(self, tenant: TenantId, key: KeyId) -> None:
        """Cancel the tasks that were started with a key that has ended."""
        for run in self._runs.values():
            principal = run.registry.principal
            if (principal.tenant, principal.key) == (tenant, key):
                run.ended_because = _KEY_ENDED
                run.scope.cancel()

    def end_tenant(self, tenant: TenantId) -> None:
        """Cancel the tasks of a tenant that was removed."""
        for run in self._runs.values():
            if run.registry.principal.tenant == tenant:
                run.scope.cancel()

    def _start(self, run: TaskRun, task: McpTask) -> None:
        """Run a task from its start, and follow it."""
        self._runs[task.id] = run
        self._tasks.spawn(self._call, run)
        self._tasks.spawn(self._follow, run, task)

    async def _record(self, run: TaskRun, at_once: bool) -> None:  # `spawn` passes positional arguments only
        """Commit the row of a call; a running call that cannot become a task keeps its request."""
        try:
            async with run.lock:
                if run.done.is_set():
                    return
                run.task = await self.records.create(run.draft, holder=run.holder)
            run.peer.detach()
            self._runs[run.task.id] = run
            if at_once:
                self._tasks.spawn(self._call, run)
            self._tasks.spawn(self._follow, run, run.task)
        except Exception as error:
            if at_once:  # otherwise the call runs, and ends in its request
                run.raised = error if isinstance(error, GatewayError) else HandlerFailed("the task could not be stored")
                run.done.set()
            log.warning("task_not_made", exc_info=True, correlation_id=run.correlation_id)
        finally:
            run.recorded.set()

    async def _prepare(self, task: McpTask) -> TaskRun:
        """Bind the call of a stored task again.

        Raises:
            Forbidden: the key that started the task has ended.
            NotFound: the tool or the profile no longer exists.
        """
        principal = await self._authority.principal_of(task.key)
        owner = task.owner
        # guard: task-of-a-valid-key
        if principal is None or (principal.tenant, principal.subject) != (owner.tenant, owner.subject):
            raise Forbidden(_KEY_ENDED)
        registry = await self._connections.attach(principal, owner.profile)
        bound = await registry.tool(task.tool)
        if bound is None or principal.profile not in {None, owner.profile}:
            raise NotFound("the tool of this task no longer exists")
        peer = StatelessPeer(
            None, RoundState(answers=task.rounds.answers, memory=task.rounds.memory), {}, {}, spawn=self._tasks.spawn
        )
        peer.capabilities = ClientCapabilities.model_validate(task.call.capabilities, by_name=False)
        run = TaskRun(registry, bound, task.call.arguments, peer, correlation=task.correlation_id)
        run.holder, run.task = task.holder, task
        self._attach_peer(run)
        return run

    def _attach_peer(self, run: TaskRun) -> None:
        """Remove the time limit of the call's wait for other people, and record its intents."""
        run.peer.approval_timeout_s = math.inf
        run.peer.on_intent, run.peer.on_wait = partial(self._note_intent, run), partial(self._note_wait, run)

    async def _note_intent(self, run: TaskRun) -> None:
        """Record that effects may follow, in the row if it exists.

        Raises:
            Conflict: the task has ended, or another replica has its lease.
            DatabaseUnavailable: the intent cannot be recorded.
        """
        async with run.lock:
            if run.has_begun:
                return
            task = run.task
            # guard: task-intent-fenced
            if task is not None and not await self.records.begin(task.owner.tenant, task.id, holder=run.holder):
                raise Conflict(_TAKEN)
            run.has_begun = True

    async def _note_wait(self, run: TaskRun, approval: Mapping[str, str] | None) -> None:
        """Record the approval for which the call waits; the caller repeats it, so a failure is no error."""
        async with run.lock:
            if run.approval == approval:
                return
            with suppress(Unavailable):
                if run.task is not None:
                    await self.records.wait(run.task.owner.tenant, run.task.id, holder=run.holder, approval=approval)
                run.approval = approval

    async def _call(self, run: TaskRun) -> None:
        try:
            with run.scope:
                members = await self.calls.run(
                    run.registry.principal,
                    run.bound,
                    run.arguments,
                    correlation_id=run.correlation_id,
                    peer=run.peer,
                    lookup=run.registry,
                )
                run.members = run.registry.finish_result(members, is_modern=True)
        except (GatewayError, InputRequired) as error:
            run.raised = error
        except Exception:
            run.raised = HandlerFailed("the call failed; the gateway's log has the reason with the correlation id")
            log.exception("task_failed", correlation_id=run.correlation_id)
        finally:
            run.done.set()

    async def _follow(self, run: TaskRun, task: McpTask) -> None:
        """Renew the lease until the run ends, then store its end."""
        pause = self.records.lease.total_seconds() / _RENEWALS
        try:
            while not run.done.is_set():
                with anyio.move_on_after(pause):
                    await run.done.wait()
                if not run.done.is_set():
                    await self._check(run)
            await self._settle(run, task)
        except anyio.get_cancelled_exc_class():
            run.scope.cancel()
            with anyio.move_on_after(CLOSING_S, shield=True):
                await run.done.wait()
                await self._settle(run, task)
            raise
        finally:
            self._runs.pop(task.id, None)

    async def _check(self, run: TaskRun) -> None:
        """Cancel a run that has lost its lease."""
        if run.task is None or run.done.is_set():
            return
        try:
            if not await self.records.renew(run.task.owner.tenant, run.task.id, holder=run.holder):
                run.scope.cancel()  # guard: task-cancel-reaches-its-run
        except Unavailable as error:  # the lease may end meanwhile; then no intent can be recorded
            log.warning("lease_not_renewed", task=run.task.id, reason=error.message)

    async def _settle(self, run: TaskRun, task: McpTask) -> None:
        """Store the end of a run; retried while PostgreSQL is unavailable."""
        for pause in _RETRY_PAUSES_S:
            try:
                await self._store_end(run, task)
            except Unavailable as error:
                log.warning("task_not_settled", task=task.id, reason=error.message)
                await anyio.sleep(pause)
            else:
                return

    async def _store_end(self, run: TaskRun, task: McpTask) -> None:
        records, tenant, raised = self.records, task.owner.tenant, run.raised
        if run.members is not None:
            await records.end(task, TaskState.COMPLETED, TaskOutcome(members=run.members))
        elif run.ended_because:
            await records.end(task, TaskState.CANCELLED, None, message=run.ended_because)
        elif isinstance(raised, InputRequired):
            await self._park(task, raised)
        elif isinstance(raised, LimitExceeded | DatabaseUnavailable) and not run.has_begun:  # nothing was done
            await records.postpone(tenant, task.id, holder=run.holder, seconds=raised.retry_after_s or TASK_RETRY_S)
        elif raised is not None:
            await records.end(task, TaskState.FAILED, failed_outcome(raised, task), message=raised.message)
        else:  # the replica stops; a task that was cancelled or taken over is unchanged
            await records.postpone(tenant, task.id, holder=run.holder, seconds=0)

    async def _park(self, task: McpTask, raised: InputRequired) -> None:
        try:
            await self.records.park(task, waiting_rounds(raised))
        except HandlerFailed as error:
            await self.records.end(task, TaskState.FAILED, failed_outcome(error, task), message=error.message)
