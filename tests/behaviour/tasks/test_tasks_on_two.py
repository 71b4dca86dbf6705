"""Tasks on two replicas: served by both, taken from one that was killed, and never run twice after an intent."""

import asyncio

import anyio

from tests.behaviour.tasks.conftest import Pair
from tests.behaviour.tasks.test_followed_tasks import following, until_status
from tests.support.replicas import until
from tests.support.tasks import TaskClient, accept


async def _started(pair: Pair, at: TaskClient, name: str) -> str:
    """A task whose request waits at the upstream."""
    pair.upstream.gate = asyncio.Event()
    task = await at.start(name)
    with anyio.fail_after(10):
        await pair.upstream.arrived.wait()
    return task


async def test_every_replica_answers_updates_and_reports(clients: tuple[TaskClient, TaskClient]) -> None:
    """Ours: a task that one replica made is read, answered and followed at the other (SAF-7)."""
    at_a, at_b = clients
    task = await at_a.start("asks_twice")
    async with following(at_b, [task]) as messages:
        await until_status(messages, "input_required")
        await at_b.update(task, first=accept(name="Ada"))
        await until_status(messages, "input_required")
        await at_a.wait(task, "input_required")
        await at_a.update(task, second=accept(name="Lovelace"))
        ended = await until_status(messages, "completed")

    assert ended["params"]["result"]["content"][0]["text"] == "Ada Lovelace"


async def test_a_cancellation_reaches_the_replica_that_runs_the_task(
    pair: Pair, clients: tuple[TaskClient, TaskClient]
) -> None:
    """Ours: the call ends where it runs, and its record shows it (SAF-7)."""
    at_a, at_b = clients
    task = await _started(pair, at_a, "reads")

    await at_b.cancel(task)

    async def is_recorded() -> bool:
        trail = (await at_a.gateway.admin.get(f"/tenants/{at_a.slug}/audit")).json()["items"]
        return any(entry["outcome"] == "cancelled" for entry in trail)

    await until(is_recorded, seconds=10)
    assert (await at_a.get(task))["status"] == "cancelled"


async def test_a_task_without_effects_is_run_again_after_a_kill(
    pair: Pair, clients: tuple[TaskClient, TaskClient]
) -> None:
    """Ours: no intent was recorded, so another replica runs the call from its start (SAF-7)."""
    at_a, at_b = clients
    task = await _started(pair, at_a, "reads")
    pair.replicas.a.kill()
    pair.upstream.reset()

    await pair.end_leases(task)

    ended = await at_b.wait(task)
    assert (ended["status"], ended["result"]["content"][0]["text"]) == ("completed", "read")


async def test_a_task_with_an_intent_is_never_run_again(pair: Pair, clients: tuple[TaskClient, TaskClient]) -> None:
    """Ours: after an intent the outcome is unknown; the task fails and states it (SAF-3, SAF-7)."""
    at_a, at_b = clients
    task = await _started(pair, at_a, "writes")
    seen = pair.upstream.seen
    pair.replicas.a.kill()

    await pair.end_leases(task)

    ended = await at_b.wait(task)
    assert ended["status"] == "failed"
    assert "unknown" in ended["error"]["message"]
    assert [each.method for each in seen] == ["POST"]


async def test_questions_survive_every_replica(pair: Pair, clients: tuple[TaskClient, TaskClient]) -> None:
    """Ours: a waiting task is in the database only; what it did before its question is not done again (SAF-7)."""
    at_a, at_b = clients
    task = await at_a.start("writes_then_asks")
    await at_a.wait(task, "input_required")
    pair.replicas.a.kill()

    await at_b.update(task, first=accept(name="Ada"))

    assert (await at_b.wait(task))["result"]["content"][0]["text"] == "Ada"
    assert [each.method for each in pair.upstream.seen] == ["POST"]


async def test_a_replica_that_stops_hands_its_tasks_over(pair: Pair, clients: tuple[TaskClient, TaskClient]) -> None:
    """Ours: SIGTERM gives the lease up, so the other replica goes on at once (SRV-3, SAF-7)."""
    at_a, at_b = clients
    task = await _started(pair, at_a, "reads")

    assert await pair.replicas.a.stop() == 0
    pair.upstream.reset()

    assert (await at_b.wait(task))["status"] == "completed"


async def test_a_frozen_replica_stores_no_second_end(pair: Pair, clients: tuple[TaskClient, TaskClient]) -> None:
    """Ours: a holder that lost its lease while it was frozen changes nothing when it wakes up (SAF-7)."""
    at_a, at_b = clients
    task = await _started(pair, at_a, "reads")
    gate = pair.upstream.gate
    pair.replicas.a.pause()
    await pair.end_leases(task)
    pair.upstream.gate, pair.upstream.body = None, b'{"second":true}'
    ended = await at_b.wait(task)
    before = ended["lastUpdatedAt"]

    pair.replicas.a.resume()
    assert gate is not None
    gate.set()
    await at_a.get(task)

    assert ended["status"] == "completed"
    assert (await at_b.get(task))["lastUpdatedAt"] == before
