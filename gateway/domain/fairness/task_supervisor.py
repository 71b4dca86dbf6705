"""Background tasks with an owner: they start while the owner's block is open, and end with it.

`app` owns the supervisor of work that outlives a request. A component with its own loops owns another supervisor, so
that components close in order.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, Protocol, Self, runtime_checkable

import anyio
import structlog

from gateway.domain.fairness.limits import CLOSING_S, RESTART_S, SOUND_S

log = structlog.get_logger(__name__)

_TOLERATED: Final = 2
"""Failures after which a loop still counts as running: one may be of a single request or message."""

Work = Callable[..., Awaitable[Any]]
Spawn = Callable[..., object]
"""Starts a background task, as `TaskSupervisor.spawn` does: a function, then its arguments."""


@runtime_checkable
class Supervised(Protocol):
    """An owner of loops. `/readyz` reports those that fail again and again."""

    @property
    def failing(self) -> Sequence[str]:
        """Names of its loops that fail again and again, so that their work is not done."""
        ...


class TaskSupervisor:
    """The background tasks of one owner, each named after its function. The failure of a task is only logged.

    A failed loop is restarted, because a replica without its heartbeat or repairs would not be noticed. Unlike a task
    group, which waits without limit for cancelled tasks, closing a supervisor takes at most 5 s.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._running: dict[asyncio.Task[None], anyio.CancelScope] = {}
        self._failures: dict[str, tuple[int, float]] = {}

    async def __aenter__(self) -> Self:
        self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def is_open(self) -> bool:
        """True while tasks can be started."""
        return self._loop is not None

    @property
    def failing(self) -> Sequence[str]:
        """Names of the loops that fail again and again, so that their work is not done."""
        since = 0.0 if self._loop is None else self._loop.time() - SOUND_S
        return [name for name, (count, last) in self._failures.items() if count > _TOLERATED and last > since]

    def open(self, *loops: Work) -> None:
        """Accept tasks from now on, and start these loops."""
        self._loop = asyncio.get_running_loop()
        for loop in loops:
            self.spawn_loop(loop)

    def spawn(self, work: Work, *arguments: object) -> None:
        """Run a task until it ends or the supervisor is closed."""
        self._start(work, partial(_run_logged, work, *arguments))

    def spawn_loop(self, work: Work) -> None:
        """Run a task until it ends or the supervisor is closed; one second after a failure it starts again."""
        self._start(work, partial(self._run_again, work))

    def _start(self, work: Work, run: Callable[[], Awaitable[Any]]) -> None:
        if self._loop is None:
            raise RuntimeError("the task supervisor is not open")
        scope = anyio.CancelScope()  # unlike `Task.cancel`, it does not interrupt a shielded clean-up
        task = self._loop.create_task(_run_in(scope, run), name=_name_of(work))
        self._running[task] = scope
        task.add_done_callback(self._running.pop)

    async def close(self) -> None:
        """Cancel all tasks, and wait at most 5 s until they have ended; a second call does nothing."""
        self._loop = None
        left = set(self._running)
        for task in left:
            self._running[task].cancel()
        if not left:
            return
        with anyio.CancelScope(shield=True):
            _, left = await asyncio.wait(left, timeout=CLOSING_S)
        if left:
            log.error("background_tasks_left", tasks=sorted(task.get_name() for task in left))

    async def _run_again(self, work: Work) -> None:
        name = _name_of(work)
        while not await _run_logged(work):
            count, last = self._failures.get(name, (0, 0.0))
            now = asyncio.get_running_loop().time()
            self._failures[name] = (count + 1 if now - last < SOUND_S else 1), now
            await anyio.sleep(RESTART_S)


def _name_of(work: Work) -> str:
    return str(getattr(work, "__qualname__", type(work).__name__))


async def _run_in(scope: anyio.CancelScope, run: Callable[[], Awaitable[Any]]) -> None:
    with scope:
        await run()


async def _run_logged(work: Work, *arguments: object) -> bool:
    """Run the work; False if it failed."""
    try:
        await work(*arguments)
    except (Exception, asyncio.CancelledError) as error:
        task = asyncio.current_task()
        # CancelledError also comes from awaiting a cancelled future; only a cancelled task must end.
        if isinstance(error, asyncio.CancelledError) and (task is None or task.cancelling()):
            raise
        with suppress(Exception):  # of the log of a program that embeds the gateway: the loop must start again
            log.exception("background_work_failed", work=_name_of(work))
        return False
    return True
