"""Slots of calls for limiters of tests."""

from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from types import TracebackType


@dataclass(frozen=True, slots=True)
class Slot:
    """A block as the slot of a call; a call that waits for a person keeps it."""

    held: AbstractAsyncContextManager[None]

    async def __aenter__(self) -> None:
        await self.held.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self.held.__aexit__(kind, error, trace)

    def released(self) -> AbstractAsyncContextManager[None]:
        return nullcontext()
