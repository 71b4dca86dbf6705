"""Tasks in PostgreSQL: leases, fencing, lifetimes, limits and seals."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import anyio
import pytest

from gateway.catalog.calls.limits import MAX_OPEN_EACH, MAX_ROUNDS_BYTES, MAX_STORED_TASKS
from gateway.catalog.calls.mcp_tasks import IsValidResponse, TaskDraft, TaskRecords
from gateway.domain.calls.mcp_tasks import (
    AskedKind,
    McpTask,
    TaskCall,
    TaskOutcome,
    TaskOwner,
    TaskQuestion,
    TaskRounds,
    TaskState,
)
from gateway.domain.events import Event, TaskChanged
from gateway.domain.identifiers import KeyId
from gateway.errors import BadInput, HandlerFailed, LimitExceeded, NotFound, SecretUnreadable
from gateway.store.database.connection import PostgresConnection, connect_owner
from gateway.store.encryption import EnvelopeCipher
from gateway.store.engine import Store
from gateway.store.kinds.tenants import TENANTS
from tests.integration.store.samples import SEALER, make_tenant
from tests.support.open_database import OpenDatabase

SECRET = "a very secret argument"
ASKED = TaskRounds(questions={"q": TaskQuestion(kind="elicitation", params={"message": "?"})})


@dataclass(slots=True)
class TaskBench:
    """The records of a tenant, and a superuser who can let time pass."""

    records: TaskRecords
    owner: TaskOwner
    superuser: PostgresConnection
    store: Store
    events: list[Event] = field(default_factory=list[Event])

    def draft(self, **more: Any) -> TaskDraft:
        """A task that could be stored."""
        draft = TaskDraft(
            owner=self.owner,
            key=KeyId("key_1"),
            tool="work",
            correlation_id="cor",
            call=TaskCall(arguments={"text": SECRET}, capabilities={}),
            rounds=TaskRounds(),
        )
        return replace(draft, **more)

    async def create(self, holder: str = "first", **more: Any) -> McpTask:
        """A stored task."""
        return await self.records.create(self.draft(**more), holder=holder)

    async def pass_time(self, task: McpTask, column: str = "leased_until") -> None:
        """Let the lease or the lifetime end."""
        await self.superuser.execute(f"update mcp_tasks set {column} = now() - interval '1 s' where id = $1", task.id)


@pytest.fixture(scope="module")
async def superuser(module_database: OpenDatabase) -> AsyncGenerator[PostgresConnection]:
    """A superuser of the database that the tests share."""
    connection = await connect_owner(module_database.database.superuser_url)
    yield connection
    await connection.close()


@pytest.fixture
async def bench(open_database: OpenDatabase, superuser: PostgresConnection) -> TaskBench:
    """A tenant without tasks."""
    store, tenant = open_database.store, make_tenant()
    async with store.transaction(tenant.id) as db:
        await TENANTS.insert(tenant.id, db, tenant)
    events: list[Event] = []

    async def publish(event: Event) -> None:
        events.append(event)

    owner = TaskOwner(tenant=tenant.id, subject="ada", profile="default")
    return TaskBench(TaskRecords(store, SEALER, publish), owner, superuser, store, events)


async def test_two_replicas_that_take_a_task_get_it_once(bench: TaskBench) -> None:
    """Ours: of many that find a lapsed lease, one gets the task, and the former holder cannot act (SAF-7)."""
    task = await bench.create()
    await bench.pass_time(task)
    taken: list[McpTask | None] = []

    async def take(number: int) -> None:
        taken.append(await bench.records.take_due(bench.owner.tenant, task.id, holder=f"run {number}"))

    async with anyio.create_task_group() as group:
        for number in range(6):
            group.start_soon(take, number)

    holders = [each.holder for each in taken if each is not None]
    assert len(holders) == 1
    assert not await bench.records.begin(bench.owner.tenant, task.id, holder="first")
    assert not await bench.records.renew(bench.owner.tenant, task.id, holder="first")
    assert not await bench.records.end(task, TaskState.COMPLETED, TaskOutcome(members=b""))
    await bench.records.park(task, ASKED)
    assert (await bench.records.get(bench.owner, task.id)).state is TaskState.WORKING
    assert await bench.records.begin(bench.owner.tenant, task.id, holder=holders[0])


async def test_a_held_lease_is_not_taken_for_any_replica_clock(bench: TaskBench) -> None:
    """Ours: the job of a replica whose clock is ahead finds the lease in force by PostgreSQL's clock (SAF-7)."""
    task = await bench.create()

    assert await bench.records.take_due(bench.owner.tenant, task.id, holder="hasty") is None

    assert await bench.records.renew(bench.owner.tenant, task.id, holder="first")


async def test_after_an_intent_a_lapsed_task_fails_once_and_for_all(bench: TaskBench) -> None:
    """Ours: `failed` with an unknown outcome; the result of the former holder comes too late (SAF-3)."""
    task = await bench.create()
    assert await bench.records.begin(bench.owner.tenant, task.id, holder="first")
    await bench.pass_time(task)

    assert await bench.records.take_due(bench.owner.tenant, task.id, holder="second") is None

    ended = await bench.records.get(bench.owner, task.id)
    assert ended.state is TaskState.FAILED
    assert ended.outcome is not None
    assert ended.outcome.error is not None
    assert not await bench.records.end(task, TaskState.COMPLETED, TaskOutcome(members=b""))
    assert bench.events == [TaskChanged(tenant=bench.owner.tenant, task=task.id)]


async def test_cancel_and_complete_at_once_have_one_winner(bench: TaskBench) -> None:
    """Ours: whichever is first is final (SAF-7)."""
    for _ in range(10):
        task = await bench.create()
        won: list[bool] = []

        async def cancel(task: McpTask = task, won: list[bool] = won) -> None:
            won.append(await bench.records.cancel(bench.owner, task.id))

        async def complete(task: McpTask = task, won: list[bool] = won) -> None:
            won.append(await bench.records.end(task, TaskState.COMPLETED, TaskOutcome(members=b'"content":[]')))

        async with anyio.create_task_group() as group:
            group.start_soon(cancel)
            group.start_soon(complete)
        assert sorted(won) == [False, True]


async def test_the_end_of_its_time_ends_a_task_and_deletes_it(bench: TaskBench) -> None:
    """Ours: an expired task is unknown at once, its holder has no lease, and its job deletes the row (SAF-7)."""
    task = await bench.create()
    await bench.pass_time(task, "expires_at")

    with pytest.raises(NotFound):
        await bench.records.get(bench.owner, task.id)
    assert not await bench.records.renew(bench.owner.tenant, task.id, holder="first")
    assert await bench.records.take_due(bench.owner.tenant, task.id, holder="second") is None
    assert await bench.superuser.fetchval("select count(*) from mcp_tasks") == 0
    assert await bench.superuser.fetchval("select count(*) from due_work") == 0


async def test_open_tasks_of_a_subject_are_bounded(bench: TaskBench) -> None:
    """Ours: one subject's flood ends with a clear refusal, and leaves room for others (TEN-3)."""
    last = [await bench.create() for _ in range(MAX_OPEN_EACH)][-1]

    with pytest.raises(LimitExceeded, match=rf"open tasks of this subject \(limit {MAX_OPEN_EACH}\)"):
        await bench.create()
    await bench.create(owner=replace(bench.owner, subject="eve"))
    await bench.records.cancel(bench.owner, last.id)
    await bench.create()


@pytest.mark.parametrize(
    ("column", "value", "state"),
    [
        ("state", f"generate_series(1, {MAX_STORED_TASKS})", "completed"),
        ("outcome", "generate_series(1, 5)", "completed"),
    ],
)
async def test_stored_tasks_are_bounded(bench: TaskBench, column: str, value: str, state: str) -> None:
    """Ours: results that are kept have a number and a size that a tenant cannot exceed (TEN-3)."""
    task = await bench.create()
    copied = "tenant_id, subject, profile, key_id, tool, correlation_id, expires_at, holder, leased_until, has_begun"
    copied += ", data_key_id, call, rounds"
    if column == "outcome":  # compressed once; the copies are of what is stored
        await bench.superuser.execute("update mcp_tasks set outcome = repeat('0', 60000000)::bytea")
    await bench.superuser.execute(
        f"insert into mcp_tasks ({copied}, id, state, outcome) select {copied}, 'copy ' || n, '{state}', outcome"
        f" from mcp_tasks, {value} n where id = $1",
        task.id,
    )

    with pytest.raises(LimitExceeded, match="too many stored tasks"):
        await bench.create()


async def test_nothing_of_a_call_is_readable_in_the_database(bench: TaskBench) -> None:
    """Ours: arguments, answers and results are sealed, each in its own row and place (TEN-4)."""
    task = await bench.create()
    other = await bench.create()
    await bench.records.park(task, ASKED)
    answers = {"q": {"action": "accept", "content": {"said": SECRET}}}
    await bench.records.answer(bench.owner, task.id, answers, is_valid_response=_any, holder="next")
    claimed = await bench.records.get(bench.owner, task.id)
    await bench.records.end(claimed, TaskState.COMPLETED, TaskOutcome(members=SECRET.encode()))

    rows = await bench.superuser.fetch("select call, rounds, outcome from mcp_tasks")
    assert SECRET not in "".join(ascii(value) for row in rows for value in row.values())
    await bench.superuser.execute(
        "update mcp_tasks set outcome = (select outcome from mcp_tasks where id = $1) where id = $2", task.id, other.id
    )
    with pytest.raises(SecretUnreadable):
        await bench.records.get(bench.owner, other.id)
    with pytest.raises(SecretUnreadable):
        await TaskRecords(bench.store, EnvelopeCipher(["other" * 10]), _drop).get(bench.owner, task.id)


def _any(kind: AskedKind, answer: object) -> bool:
    """Every object is an answer."""
    del kind, answer
    return True


def _none(kind: AskedKind, answer: object) -> bool:
    """No object is an answer."""
    return not _any(kind, answer)


async def _drop(_: Event) -> None:
    """No replica learns it."""


async def test_answers_are_bounded_and_of_the_right_form(bench: TaskBench) -> None:
    """Ours: an answer that is no answer, or too much of one, changes nothing (TEN-5)."""
    task = await bench.create()
    await bench.records.park(task, ASKED)
    huge: dict[str, object] = {"q": {"action": "accept", "content": {"text": "x" * MAX_ROUNDS_BYTES}}}
    wrong: tuple[tuple[dict[str, object], IsValidResponse], ...] = ((huge, _any), ({"q": {}}, _none))
    for answers, is_valid_response in wrong:
        with pytest.raises(BadInput):
            await bench.records.answer(
                bench.owner, task.id, answers, is_valid_response=is_valid_response, holder="next"
            )

    many: dict[str, object] = {str(number): {} for number in range(100_000)}
    assert await bench.records.answer(bench.owner, task.id, many, is_valid_response=_any, holder="next") is None
    assert (await bench.records.get(bench.owner, task.id)).rounds.questions.keys() == {"q"}


@pytest.mark.parametrize("memory", [{"a": "x" * MAX_ROUNDS_BYTES}, {"a": object()}])
async def test_the_memory_of_a_call_is_small_json(bench: TaskBench, memory: dict[str, Any]) -> None:
    """Ours: a handler that remembers too much, or no JSON, fails its own task (CAL-4)."""
    task = await bench.create()

    with pytest.raises(HandlerFailed):
        await bench.records.park(task, TaskRounds(memory=memory))


async def test_two_that_answer_at_once_start_one_round(bench: TaskBench) -> None:
    """Ours: the answer that completes the questions leases the task; the other changes nothing (SAF-7)."""
    task = await bench.create()
    await bench.records.park(task, ASKED)
    claimed: list[McpTask | None] = []

    async def answer(number: int) -> None:
        claimed.append(
            await bench.records.answer(
                bench.owner, task.id, {"q": {"action": "accept"}}, is_valid_response=_any, holder=f"run {number}"
            )
        )

    async with anyio.create_task_group() as group:
        for number in range(5):
            group.start_soon(answer, number)

    assert len([each for each in claimed if each is not None]) == 1


async def test_a_task_that_was_put_off_is_taken_later(bench: TaskBench) -> None:
    """Ours: a call that was refused for a limit waits, and does not lose its place (TEN-3)."""
    task = await bench.create()
    await bench.records.postpone(bench.owner.tenant, task.id, holder="first", seconds=0)

    taken = await bench.records.take_due(bench.owner.tenant, task.id, holder="second")

    assert taken is not None
    assert taken.holder == "second"
    assert taken.expires_at - taken.created_at == timedelta(hours=24)
