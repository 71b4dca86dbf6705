"""How Python functions run: within their time, on the event loop or in a thread, and only what is typed comes back."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

from gateway.domain.results import Completions
from gateway.errors import HandlerFailed
from gateway.handlers.interfaces import Call
from gateway.handlers.python.context import Context
from gateway.handlers.python.registry import PythonHandler
from gateway.handlers.python.signatures import Completing, CompletionFunction
from gateway.handlers.python.thread_pool import ThreadPool
from gateway.handlers.result_forms import ResultForm
from gateway.upstream.client import UpstreamClient

_Answer = TypeVar("_Answer")
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonAction(Generic[_Answer]):
    """Runs the function of one primitive."""

    code: PythonHandler
    form: ResultForm[_Answer]
    upstream: UpstreamClient
    threads: ThreadPool

    async def run(self, arguments: Mapping[str, object], call: Call, /) -> _Answer:
        """The function's answer.

        Raises:
            HandlerFailed: it took too long, or returned something else than its family may.
        """
        context = Context(call, arguments, upstream=self.upstream, uri=self.form.uri)
        try:
            with call.within(self.code.timeout_s):
                function = self.code.function
                returned = await run(
                    lambda: function(context), self.threads, call.principal.tenant, is_async=self.code.is_async
                )
        finally:
            context.close()
        return self.form.of_returned(returned)


async def run(function: Callable[[], object], threads: ThreadPool, tenant: str, *, is_async: bool) -> object:
    """What a function returns, awaited if need be.

    Raises:
        RuntimeError: it raised what would end the gateway, or the task that it runs in.
    """
    try:
        returned = function() if is_async else await threads.run(tenant, function)
        return await cast("Awaitable[object]", returned) if inspect.isawaitable(returned) else returned
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise RuntimeError("the function raised CancelledError, and nobody cancelled it") from None
    except (Exception, GeneratorExit):  # the latter is how a coroutine that nobody goes on with is closed
        raise
    except BaseException as error:
        raise RuntimeError(f"the function raised {type(error).__name__}") from error


async def completions(
    function: CompletionFunction, completing: Completing, threads: ThreadPool, *, is_async: bool
) -> Completions:
    """The values that a completion function suggests.

    Raises:
        HandlerFailed: it returned something else.
    """
    returned = await run(lambda: function(completing), threads, completing.principal.tenant, is_async=is_async)
    kind = type(returned).__name__
    if isinstance(returned, Completions):
        return returned
    if isinstance(returned, Sequence) and not isinstance(returned, str | bytes):
        values = tuple(cast("Sequence[object]", returned))
        if all(isinstance(value, str) for value in values):
            return Completions(values=cast("tuple[str, ...]", values), total=len(values))
    error = HandlerFailed("the completion returned something that is no list of values")
    error.add_note(f"it returned {kind}")  # for the log, not for the client
    raise error
