"""Imported operations of which a tenant fixed arguments, or wants the answers cut."""

from collections.abc import Mapping

import msgspec

from gateway.definitions.handlers.specs import ResultSpec
from gateway.domain.http.requests import UpstreamAnswer
from gateway.domain.tools import Tool
from gateway.handlers.http_request import project_answer
from gateway.handlers.interfaces import Call, Handler, Prepared

_FIRST_ERROR = 300
_decode = msgspec.json.Decoder(dict[str, object]).decode
_decode_result = msgspec.json.Decoder(ResultSpec).decode


class OverriddenHandler:
    """Runs an operation with what is pinned; what is pinned is no argument, so a caller's own is refused before."""

    def __init__(self, tool: Tool, handler: Handler[UpstreamAnswer]) -> None:
        self._handler = handler
        self._pinned: Mapping[str, object] = _decode(tool.pinned) if tool.pinned else {}
        self._result = _decode_result(tool.result) if tool.result else ResultSpec()

    def settle(self, arguments: Mapping[str, object]) -> Mapping[str, object]:
        """The arguments as the operation settles them."""
        return self._handler.settle(arguments)

    def prepare(self, arguments: Mapping[str, object]) -> Prepared:
        """The request that these arguments and the pinned ones make."""
        return self._handler.prepare(self._handler.settle({**arguments, **self._pinned}))

    async def preview(self, prepared: Prepared) -> str:
        """As the operation shows it."""
        return await self._handler.preview(prepared)

    async def run(self, prepared: Prepared, call: Call, /) -> UpstreamAnswer:
        """Send it; an answer that is no failure and has a body is cut.

        Raises:
            HandlerFailed: the answer is not what can be cut so.
        """
        answer = await self._handler.run(prepared, call)
        return project_answer(answer, self._result) if answer.status < _FIRST_ERROR and answer.body else answer
