"""Work of the event loop: its iterations while a block runs, and the Python functions that it enters in each."""

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import FrameType

import anyio
from anyio.lowlevel import checkpoint


@dataclass(slots=True)
class LoopWork:
    """The iterations so far, and the most functions that one of them entered."""

    iterations: int = 0
    calls: int = 0
    most_calls: int = 0

    def count(self, frame: FrameType, event: str, argument: object) -> None:
        """Count an entered function; a profile function of `sys.setprofile`."""
        del frame, argument
        self.calls += event == "call"

    async def watch(self) -> None:
        """Note each iteration."""
        while True:
            self.most_calls, self.calls = max(self.most_calls, self.calls), 0
            self.iterations += 1
            await checkpoint()


@asynccontextmanager
async def loop_work() -> AsyncGenerator[LoopWork]:
    """Count the work of the block."""
    work, former = LoopWork(), sys.getprofile()
    async with anyio.create_task_group() as group:
        group.start_soon(work.watch)
        await checkpoint()
        sys.setprofile(work.count)
        try:
            yield work
        finally:
            sys.setprofile(former)
            group.cancel_scope.cancel()
