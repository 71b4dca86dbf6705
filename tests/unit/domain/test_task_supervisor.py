"""Background tasks and their owner."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
import structlog
from structlog.testing import capture_logs

import gateway
from gateway.app.workers import supervisor
from gateway.domain.fairness.task_supervisor import TaskSupervisor


async def test_closing_ends_spawned_tasks() -> None:
    """Ours: nothing runs on behind a closed supervisor, and an error of what ran is only logged, with its name."""
    ended = anyio.Event()

    async def wait() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()

    async def fail() -> None:
        raise ValueError("a bug")

    with capture_logs() as lines:
        async with TaskSupervisor() as tasks:
            tasks.spawn(wait)
            tasks.spawn(fail)
            await anyio.wait_all_tasks_blocked()
    with pytest.raises(RuntimeError):
        tasks.spawn(wait)

    assert ended.is_set()
    assert [line["event"] for line in lines] == ["background_work_failed"]
    assert lines[0]["work"].endswith("fail")


async def _raise_an_error() -> None:
    raise ValueError("a bug")


async def _await_a_cancelled_future() -> None:
    future = asyncio.get_running_loop().create_future()
    future.cancel()
    await future


@pytest.mark.parametrize("fail", [_raise_an_error, _await_a_cancelled_future])
async def test_a_loop_that_fails_is_started_again(
    monkeypatch: pytest.MonkeyPatch, fail: Callable[[], Awaitable[None]]
) -> None:
    """Ours: a bug in a heartbeat, or a cancellation that was not meant for it, ends one beat, not the heartbeat
    (SRV-4)."""
    monkeypatch.setattr("gateway.domain.fairness.task_supervisor.RESTART_S", 0)
    begun: list[int] = []
    is_third = anyio.Event()

    async def beat() -> None:
        begun.append(len(begun))
        if len(begun) < 3:
            await fail()
        is_third.set()

    tasks = TaskSupervisor()
    with capture_logs() as lines:
        tasks.open(beat)
        with anyio.fail_after(10):
            await is_third.wait()
        await tasks.close()

    assert begun == [0, 1, 2]
    assert [line["event"] for line in lines] == ["background_work_failed"] * 2


async def test_a_loop_with_a_failing_log_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: a program that embeds the gateway decides where its log goes; a loop that fails often is named (SRV-4)."""
    monkeypatch.setattr("gateway.domain.fairness.task_supervisor.RESTART_S", 0)
    begun: list[int] = []
    is_fourth, may_fail = anyio.Event(), anyio.Event()

    def refuse(*_: object) -> str:
        raise OSError("no space left on device")

    async def beat() -> None:
        begun.append(len(begun))
        if len(begun) < 4:
            await _raise_an_error()
        is_fourth.set()
        await may_fail.wait()

    tasks = TaskSupervisor()
    before = structlog.get_config()
    try:
        structlog.configure(processors=[refuse])
        tasks.open(beat)
        assert tasks.failing == []
        with anyio.fail_after(10):
            await is_fourth.wait()
        assert [name.rpartition(".")[2] for name in tasks.failing] == ["beat"]
        await tasks.close()
    finally:
        structlog.configure(**before)


def test_every_owner_of_loops_reports_those_that_fail() -> None:
    """Ours: `/readyz` asks every loop, so that none ends without notice (SRV-4)."""
    modules = {path: path.read_text() for path in Path(gateway.__path__[0]).rglob("*.py")}
    modules.pop(Path(supervisor.__file__))  # of workers: it has no `/readyz`, and shows an ended worker there
    owners = {path.name for path, code in modules.items() if re.search(r"tasks\.open\(\w|tasks\.spawn_loop\(", code)}

    assert {
        "event_bus.py",
        "writer.py",
        "attachments.py",
        "inboxes.py",
        "hidden_names.py",
        "open_providers.py",
    } <= owners
    assert {path.name for path, code in modules.items() if re.search(r"self\._?tasks\.failing", code)} == owners


async def test_tasks_are_named_after_their_work_and_receive_its_arguments() -> None:
    """Ours: a task of a dump can be found in the code."""
    seen: list[tuple[str, int]] = []

    async def note(number: int) -> None:
        task = asyncio.current_task()
        seen.append(("" if task is None else task.get_name(), number))

    async with TaskSupervisor() as tasks:
        tasks.spawn(note, 7)
        await anyio.wait_all_tasks_blocked()

    [(name, number)] = seen
    assert name.endswith("note")
    assert number == 7


async def test_a_task_that_does_not_end_delays_closing_for_a_bounded_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: a task that ignores its cancellation is reported, and the replica ends."""
    monkeypatch.setattr("gateway.domain.fairness.task_supervisor.CLOSING_S", 0.05)
    release = asyncio.Event()

    async def ignore() -> None:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    with capture_logs() as lines, anyio.fail_after(5):
        async with TaskSupervisor() as tasks:
            tasks.spawn(ignore)
            await anyio.wait_all_tasks_blocked()
    release.set()
    await anyio.wait_all_tasks_blocked()

    assert [line["event"] for line in lines] == ["background_tasks_left"]


async def test_closing_waits_for_clean_up_even_when_its_caller_is_cancelled() -> None:
    """Ours: a part that is closed by a cancelled start leaves no task behind."""
    cleaned = False

    async def clean_up() -> None:
        nonlocal cleaned
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.lowlevel.checkpoint()  # a second cancellation would arrive at this wait
            cleaned = True

    tasks = TaskSupervisor()
    with anyio.CancelScope() as scope:
        tasks.open(clean_up)
        await anyio.wait_all_tasks_blocked()
        scope.cancel()
        await tasks.close()

    assert cleaned
    await tasks.close()


async def test_closing_does_not_interrupt_a_shielded_clean_up() -> None:
    """Ours: a connection that a task is closing is closed, also when the replica ends meanwhile."""
    finish, closed = anyio.Event(), False

    async def clean_up() -> None:
        nonlocal closed
        with anyio.CancelScope(shield=True):
            await finish.wait()
            closed = True

    async with TaskSupervisor() as tasks:
        tasks.spawn(clean_up)
        await anyio.wait_all_tasks_blocked()
        asyncio.get_running_loop().call_later(0.01, finish.set)

    assert closed
