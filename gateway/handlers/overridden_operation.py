"""Imported operations with overrides: fixed arguments and projected responses."""

from collections.abc import Mapping

import msgspec

from gateway.definitions.handlers.specs import ResultSpec
from gateway.domain.http.requests import UpstreamResponse
from gateway.domain.json_text import decode_object
from gateway.domain.tools import Tool
from gateway.handlers.interfaces import Call, Handler, NeedsCredentials, Prepared
from gateway.handlers.response_body.projection import project
from gateway.handlers.response_body.result_processes import ResultProcesses

_decode_result = msgspec.json.Decoder(ResultSpec).decode


class OverriddenHandler:
    """Runs an operation with pinned arguments, which replace any values of the caller, and projects the response."""

    def __init__(self, tool: Tool, handler: Handler[UpstreamResponse], processes: ResultProcesses) -> None:
        self._handler = handler
        self._processes = processes
        self._pinned: Mapping[str, object] = decode_object(tool.pinned) if tool.pinned else {}
        self._result = _decode_result(tool.result) if tool.result else ResultSpec()

    def settle(self, arguments: Mapping[str, object]) -> Mapping[str, object]:
        """Settle the arguments as the operation does."""
        return self._handler.settle(arguments)

    def prepare(self, arguments: Mapping[str, object]) -> Prepared:
        """Return the request for these arguments and the pinned ones; the pinned ones take precedence."""
        return self._handler.prepare(self._handler.settle({**arguments, **self._pinned}))  # guard: pinned-argument

    async def require_credentials(self) -> None:
        """Check the stored credentials of the operation; see `NeedsCredentials`."""
        if isinstance(self._handler, NeedsCredentials):
            await self._handler.require_credentials()

    async def preview(self, prepared: Prepared) -> str:
        """Show the operation's preview."""
        return await self._handler.preview(prepared)

    async def run(self, prepared: Prepared, call: Call, /) -> UpstreamResponse:
        """Send the request; a response with a body and a status below 300 is projected.

        Raises:
            HandlerFailed: the response is not JSON, or has no value at the pointer.
            UpstreamError: there is no response.
        """
        response = await self._handler.run(prepared, call)
        return await project(self._processes, call.principal.tenant, response, self._result)
