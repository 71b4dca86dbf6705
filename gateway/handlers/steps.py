"""Handlers that run a list of steps in order, until a step returns a result.

There are no loops, so a run has at most as many steps as the list. Its duration and the size of stored results are
limited as well. A failed tool call or request ends the list with its failure.

With clients of 2026-07-28, a request to the client ends the round, and the list restarts when the response arrives.
Completed calls and requests are not repeated, except safe requests with results too large to store. Notifications, log
messages and pauses are not repeated either.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast, get_args

import anyio
import msgspec
from anyio.lowlevel import checkpoint

from gateway.definitions.handlers.specs import (
    AskStep,
    CallStep,
    GatherStep,
    HttpStep,
    IfStep,
    InputStep,
    LogStep,
    ProgressStep,
    ReturnStep,
    RootsStep,
    SampleStep,
    SleepStep,
    Step,
    StepsSpec,
)
from gateway.domain.fairness.large_work import run_large
from gateway.domain.http.requests import UpstreamResponse
from gateway.errors import HandlerFailed, NotFound
from gateway.handlers.call_memo import CallMemo
from gateway.handlers.declared_results import fill, variables_of
from gateway.handlers.http_request import EgressContext, HttpRequester
from gateway.handlers.input_steps import read_input_response, to_input_request
from gateway.handlers.interfaces import Call, LogLevel
from gateway.handlers.limits import LIST_S, MAX_STEP_RESULTS_BYTES
from gateway.handlers.response_body.kinds import is_json
from gateway.handlers.response_body.reading import kind_of, read_json, read_text
from gateway.handlers.result_forms import ResultForm

_FIRST_ERROR = 300
_COMPLETED = "steps"
_LEVELS = frozenset(get_args(LogLevel))
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class StepsAction(Generic[_Result]):
    """Runs a list of steps."""

    spec: StepsSpec
    form: ResultForm[_Result]
    egress: EgressContext

    async def run(self, arguments: Mapping[str, object], call: Call, /) -> _Result:
        """Return the result of the step that ends the list, or `ResultForm.of_nothing` if no step ends it."""
        with call.within(LIST_S):
            ended = await _Run(self.form, self.egress, call, variables_of(arguments)).run_steps(self.spec.steps, "")
        return self.form.of_nothing() if ended is None else ended.result


@dataclass(frozen=True, slots=True)
class _ListEnd(Generic[_Result]):
    """Marks the end of the list, with its result."""

    result: _Result


class _Run(Generic[_Result]):
    """One run of a list."""

    def __init__(
        self, form: ResultForm[_Result], egress: EgressContext, call: Call, variables: dict[str, object]
    ) -> None:
        self._form = form
        self._egress = egress
        self._call = call
        self._peer = call.peer
        self._variables = variables
        self._memory = CallMemo(self._peer)
        self._left = MAX_STEP_RESULTS_BYTES
        self._step_count = 0
        progress_sent = self._peer.recall(_COMPLETED)
        self._progress_sent = progress_sent if isinstance(progress_sent, int) else 0

    async def run_steps(self, steps: tuple[Step, ...], path: str) -> _ListEnd[_Result] | None:
        """Run the steps in order; return None if none of them ended the list."""
        for number, step in enumerate(steps):
            ended = await self._run_step(step, f"{path}/{number}")
            if ended is not None:
                return ended
        return None

    async def _run_step(self, step: Step, path: str) -> _ListEnd[_Result] | None:
        self._step_count += 1
        await checkpoint()  # filling templates never suspends, so let other tasks run in between
        match step:
            case IfStep():
                branch = step.then if step.when.holds(self._variables) else step.otherwise
                return await self.run_steps(branch, f"{path}/{'then' if branch is step.then else 'else'}")
            case ReturnStep():
                return _ListEnd(fill(step.result, self._variables, self._form))
            case CallStep():
                return await self._call_tool(step, path)
            case HttpStep():
                return await self._send(step, path)
            case AskStep() | SampleStep() | RootsStep():
                await self._ask((step,))
            case GatherStep():
                await self._ask(step.questions)
            case ProgressStep() | LogStep() | SleepStep():
                if self._step_count > self._progress_sent:  # earlier steps ran in a previous round of this call
                    await self._notify(step)
        return None

    async def _notify(self, step: ProgressStep | LogStep | SleepStep) -> None:
        match step:
            case SleepStep():
                await anyio.sleep(step.seconds)
            case LogStep():
                if step.level not in _LEVELS:
                    raise HandlerFailed(f"there is no log level {step.level!r}")
                await self._peer.log(cast("LogLevel", step.level), step.text.render(self._variables), step.logger)
            case ProgressStep():
                total = None if step.total is None else _number(step.total.render(self._variables))
                message = None if step.message is None else step.message.render(self._variables)
                await self._peer.progress(_number(step.progress.render(self._variables)), total, message)

    async def _ask(self, steps: tuple[InputStep, ...]) -> None:
        self._peer.remember(_COMPLETED, self._step_count)
        input_requests = {step.key: to_input_request(step, self._variables) for step in steps}
        responses = await self._peer.ask(input_requests)
        for step in steps:
            self._store_result(step.keep_as, read_input_response(step, responses[step.key]))

    async def _call_tool(self, step: CallStep, path: str) -> _ListEnd[_Result] | None:
        arguments = step.arguments.render(self._variables)
        if not isinstance(arguments, dict):
            raise HandlerFailed(f"the arguments for {step.tool!r} are not an object")
        tool_arguments = cast("dict[str, object]", arguments)

        async def act() -> dict[str, Any]:
            try:
                return await self._call.call_tool(step.tool, tool_arguments, key=path[1:])
            except NotFound:
                raise HandlerFailed(f"there is no tool {step.tool!r} to call") from None

        result = cast("dict[str, Any]", await self._memory.once(f"do{path}", act, repeatable=False))
        if result.get("isError"):
            return _ListEnd(self._form.of_failure(result))
        self._store_result(step.keep_as, result)
        return None

    async def _send(self, step: HttpStep, path: str) -> _ListEnd[_Result] | None:
        requester = HttpRequester(step.http, self._egress)

        async def act() -> list[Any]:
            request = requester.request(self._variables)
            response = await requester.send(request, self._call, limit_bytes=max(self._left, 1))
            if response.status >= _FIRST_ERROR:
                failed.append(response)
                return []
            stored = await run_large(self._egress.tenant, len(response.body), _stored_form, response)
            self._call.release_body()  # guard: steps-hold-no-body
            return [stored]

        failed: list[UpstreamResponse] = []
        stored = await self._memory.once(f"do{path}", act, repeatable=requester.is_safe)
        if failed:
            return _ListEnd(self._form.of_response(failed[0]))
        if not stored:
            raise HandlerFailed("a request failed in an earlier round of the call")
        self._store_result(step.keep_as, stored[0])
        return None

    def _store_result(self, name: str | None, value: object) -> None:
        if name is None:
            return
        try:
            self._left -= len(msgspec.json.encode(value))
        except (TypeError, ValueError, RecursionError):
            raise HandlerFailed(f"the value to store as {name!r} is not valid JSON") from None
        if self._left < 0:  # guard: steps-kept
            raise HandlerFailed(
                f"the stored results of the steps are larger than {MAX_STEP_RESULTS_BYTES} bytes in total"
            )
        self._variables[name] = value


def _stored_form(response: UpstreamResponse) -> object:
    """Return the stored form of a response: a JSON value if it is JSON, otherwise text; None without a body."""
    kind = kind_of(response)
    if not response.body:
        return None
    if is_json(kind):
        return read_json(response)
    text = read_text(response)
    if text is None:
        raise HandlerFailed("the upstream's response is neither JSON nor text, so steps cannot use it")
    return text


def _number(value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    raise HandlerFailed("the progress of a call must be a number")
