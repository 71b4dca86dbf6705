"""Completion of prompt arguments and of template variables."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from gateway.definitions.handlers.specs import CompletionSpec, FetchedValues, ListedValues
from gateway.domain.fairness.large_work import run_large
from gateway.domain.results import Completions
from gateway.errors import HandlerFailed, UpstreamError
from gateway.handlers.http_request import EgressContext, HttpRequester
from gateway.handlers.interfaces import Call
from gateway.handlers.limits import COMPLETION_S, MAX_COMPLETIONS
from gateway.handlers.python.registry import PythonHandler
from gateway.handlers.python.runner import completions
from gateway.handlers.python.signatures import Completing, CompletionFunction
from gateway.handlers.response_body.reading import read_json

_FIRST_ERROR = 300


@dataclass(frozen=True, slots=True)
class DeclaredCompleter:
    """Completes the arguments for which a handler declares completions."""

    declared: Mapping[str, CompletionSpec]
    egress: EgressContext

    async def complete(self, argument: str, value: str, chosen: Mapping[str, str], call: Call) -> Completions:
        """Return at most 100 values: declared ones that begin with the typed text, or those that a request returns.

        Raises:
            HandlerFailed, TemplateFailed, UpstreamError: the request returned no list of values in ten seconds.
        """
        match self.declared.get(argument):
            case ListedValues() as listed:
                found = listed.matching(value)
                return Completions(
                    values=found[:MAX_COMPLETIONS], total=len(found), has_more=len(found) > MAX_COMPLETIONS
                )
            case FetchedValues(http=http):
                requester = HttpRequester(http, self.egress)
                with call.within(COMPLETION_S):
                    return await _fetch(requester, value, chosen, call)
            case None:
                return Completions(values=())


@dataclass(frozen=True, slots=True)
class PythonCompleter:
    """Completes with a Python function."""

    code: PythonHandler
    function: CompletionFunction

    async def complete(self, argument: str, value: str, chosen: Mapping[str, str], call: Call) -> Completions:
        """Return the values that the function suggests.

        Raises:
            HandlerFailed: the function took too long, or returned a type that completions do not allow.
            LimitExceeded: no thread was free in time.
        """
        completing = Completing(principal=call.principal.without_token(), argument=argument, value=value, chosen=chosen)
        is_async = inspect.iscoroutinefunction(self.function)
        with call.within(min(COMPLETION_S, self.code.timeout_s)):
            return await completions(self.function, completing, is_async=is_async)


async def _fetch(requester: HttpRequester, value: str, chosen: Mapping[str, str], call: Call) -> Completions:
    response = await requester.send(requester.request({"value": value, "arguments": dict(chosen)}), call)
    if response.status >= _FIRST_ERROR:
        raise UpstreamError(f"The upstream responded with status {response.status}.")
    found = await run_large(call.principal.tenant, len(response.body), read_json, response)
    if not isinstance(found, list):
        raise HandlerFailed("the upstream's response is not a list of values")
    values = [_text(each) for each in cast("list[object]", found)]
    return Completions(
        values=tuple(values[:MAX_COMPLETIONS]), total=len(values), has_more=len(values) > MAX_COMPLETIONS
    )


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise HandlerFailed("the upstream's response is not a list of values")
