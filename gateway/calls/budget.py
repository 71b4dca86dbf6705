"""Budget of a call and its inner calls: their number, and time limits that pause while the client responds."""

import math
from collections.abc import Generator
from contextlib import contextmanager
from types import TracebackType

import anyio

from gateway.calls.limits import MAX_CALLS, MAX_NESTED_CALLS
from gateway.domain.refusals import RecursionRefused
from gateway.errors import HandlerFailed


class CallTimeout:
    """One time limit, which applies while its block runs."""

    def __init__(self, scopes: list[anyio.CancelScope], seconds: float) -> None:
        self._scopes = scopes
        self._seconds = seconds
        self._scope = anyio.CancelScope()

    def __enter__(self) -> None:
        self._scope.deadline = anyio.current_time() + self._seconds
        self._scope.__enter__()
        self._scopes.append(self._scope)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the block.

        Raises:
            HandlerFailed: the block was cancelled because it took too long.
        """
        self._scopes.remove(self._scope)
        if self._scope.__exit__(kind, error, trace):
            raise HandlerFailed(f"the call took longer than {self._seconds:g} seconds and was stopped") from None


class CallBudget:
    """The nested time limits of one call and the calls inside it, and the number of those calls."""

    def __init__(self) -> None:
        self._scopes: list[anyio.CancelScope] = []
        self._calls = 0
        self._pauses = 0
        self._paused_at = 0.0
        self._stopped: list[tuple[anyio.CancelScope, float]] = []

    def enter(self, depth: int) -> None:
        """Count one more inner call, made by a call at this depth.

        Raises:
            RecursionRefused: the inner call would be too deep, or there are too many in all.
        """
        self._calls += 1
        if depth >= MAX_NESTED_CALLS:  # guard: recursion-depth
            raise RecursionRefused(f"calls are nested more than {MAX_NESTED_CALLS} deep")
        if self._calls > MAX_CALLS:  # guard: recursion-width
            raise RecursionRefused(f"the call made more than {MAX_CALLS} further calls")

    def within(self, seconds: float) -> "CallTimeout":
        """Return a block that is cancelled after this many seconds."""
        return CallTimeout(self._scopes, seconds)

    @contextmanager
    def paused(self) -> Generator[None]:
        """Suspend the current time limits while the block runs; blocks may overlap."""
        # Only the outermost of overlapping pauses stops the clock: questions of parallel inner calls overlap.
        if self._pauses == 0:
            self._paused_at = anyio.current_time()
            self._stopped = [(scope, scope.deadline) for scope in self._scopes]
            for scope, _ in self._stopped:
                scope.deadline = math.inf
        self._pauses += 1
        try:
            yield
        finally:
            self._pauses -= 1
            if self._pauses == 0:
                passed = anyio.current_time() - self._paused_at
                for scope, deadline in self._stopped:
                    scope.deadline = deadline + passed
