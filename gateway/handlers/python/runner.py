"""Execution of Python functions: with a time limit, on the event loop or in a thread, with checked return types."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

from gateway.domain.fairness.thread_kinds import HANDLERS
from gateway.domain.fairness.threads import run_in_thread
from gateway.domain.results import Completions
from gateway.errors import HandlerFailed
from gateway.handlers.interfaces import Call
from gateway.handlers.python.context import Context
from gateway.handlers.python.registry import PythonHandler
from gateway.handlers.python.signatures import Completing, CompletionFunction
from gateway.handlers.result_forms import ResultForm
from gateway.upstream.client import UpstreamClient

_Result = TypeVar("_Result")
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonAction(Generic[_Result]):
    """Runs the function of one primitive."""

    code: PythonHandler
    form: ResultForm[_Result]
    upstream: UpstreamClient

    async def run(self, arguments: Mapping[str, object], call: Call, /) -> _Result:
        """Return the function's result in the form of the primitive's family.

        Raises:
            HandlerFailed: the function took too long, or returned a value that its family does not allow.
            LimitExceeded: no thread was free in time.
        """
        context = Context(call, arguments, upstream=self.upstream, uri=self.form.uri)
        try:
            with call.within(self.code.timeout_s):
                function = self.code.function
                returned = await run(lambda: function(context), call.principal.tenant, is_async=self.code.is_async)
        finally:
            context.close()
        return self.form.of_returned(returned)


async def run(function: Callable[[], object], tenant: str, *, is_async: bool) -> object:
    """Return a function's return value, awaited if necessary. Exceptions of the function propagate.

    Raises:
        RuntimeError: the function raised CancelledError itself, or an exception that would end the gateway.
    """
    try:
        returned = function() if is_async else await run_in_thread(HANDLERS, tenant, function)
        return await cast("Awaitable[object]", returned) if inspect.isawaitable(returned) else returned
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise RuntimeError("the function raised CancelledError, but was not cancelled") from None
    except (Exception, GeneratorExit):  # GeneratorExit closes an abandoned coroutine
        raise
    except BaseException as error:  # guard: code-exit
        raise RuntimeError(f"the function raised {type(error).__name__}") from error


async def completions(function: CompletionFunction, completing: Completing, *, is_async: bool) -> Completions:
    """Return the values that a completion function suggests.

    Raises:
        HandlerFailed: the function returned a type that completions do not allow.
    """
    returned = await run(lambda: function(completing), completing.principal.tenant, is_async=is_async)
    kind = type(returned).__name__
    if isinstance(returned, Completions):
        return returned
    if isinstance(returned, Sequence) and not isinstance(returned, str | bytes):
        values = tuple(cast("Sequence[object]", returned))
        if all(isinstance(value, str) for value in values):
            return Completions(values=cast("tuple[str, ...]", values), total=len(values))
    error = HandlerFailed("the completion function did not return a list of values")
    error.add_note(f"it returned {kind}")  # for the log, not for the client
    raise error
