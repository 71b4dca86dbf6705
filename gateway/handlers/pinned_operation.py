"""Handlers of an imported operation under another name, with some of its arguments fixed."""

from collections.abc import Mapping
from typing import Any, Generic, TypeVar, cast

from gateway.definitions.json_schema.validator import DeferredCheck, Validator
from gateway.definitions.templates.template import Tree
from gateway.domain.fairness.large_work import run_large
from gateway.domain.http.requests import UpstreamResponse
from gateway.domain.json_text import decode_json
from gateway.domain.tools import Tool
from gateway.errors import ArgumentsInvalid, HandlerFailed
from gateway.handlers.declared_results import variables_of
from gateway.handlers.interfaces import Call, Handler, NeedsCredentials, Prepared, UncheckedCall
from gateway.handlers.result_forms import ResultForm

_Result = TypeVar("_Result")


class PinnedHandler(Generic[_Result]):
    """Runs an operation with the fixed arguments, and with the caller's values for the others."""

    def __init__(
        self,
        operation: Tool,
        handler: Handler[UpstreamResponse],
        *,
        validator: Validator,
        fixed: Tree,
        form: ResultForm[_Result],
    ) -> None:
        schema: dict[str, Any] = decode_json(operation.definition)["inputSchema"]
        self._known = frozenset(cast("dict[str, object]", schema.get("properties", {})))
        self._handler = handler
        self._validator = validator
        self._fixed = fixed
        self._form = form

    def settle(self, arguments: Mapping[str, object]) -> Mapping[str, object]:
        """Return the arguments unchanged; `prepare` settles the operation's arguments."""
        return arguments

    def prepare(self, arguments: Mapping[str, object]) -> Prepared:
        """Return the request for the fixed and the given arguments; the fixed ones take precedence.

        Raises:
            ArgumentsInvalid: the arguments together do not match the operation's input schema.
            HandlerFailed, TemplateFailed: the fixed arguments cannot be filled.
            UncheckedCall: their check does not end on the event loop.
        """
        fixed = self._fixed.render(variables_of(arguments))
        if not isinstance(fixed, dict):
            raise HandlerFailed("the fixed arguments are not an object")
        given = {name: value for name, value in arguments.items() if name in self._known}
        merged = self._handler.settle({**given, **cast("dict[str, object]", fixed)})  # guard: pinned-arguments
        found = self._validator.check(merged)
        if isinstance(found, DeferredCheck):
            raise UncheckedCall(found, lambda: self._handler.prepare(merged))
        if found:
            raise ArgumentsInvalid("the arguments do not match the operation's input schema", faults=found)
        return self._handler.prepare(merged)

    async def require_credentials(self) -> None:
        """Check the stored credentials of the operation; see `NeedsCredentials`."""
        if isinstance(self._handler, NeedsCredentials):
            await self._handler.require_credentials()

    async def preview(self, prepared: Prepared) -> str:
        """Show the operation's preview."""
        return await self._handler.preview(prepared)

    async def run(self, prepared: Prepared, call: Call, /) -> _Result:
        """Send the request and return the response in the form of the family."""
        response = await self._handler.run(prepared, call)
        return await run_large(call.principal.tenant, len(response.body), self._form.of_response, response)
