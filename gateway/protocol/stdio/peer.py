"""The peer of a call on lines, in the handshake revisions; it writes notifications and requests to the client."""

from collections.abc import Container, Mapping
from typing import Any, Final

import anyio
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CreateMessageRequest,
    CreateMessageResultWithTools,
    ElicitRequest,
    ElicitResult,
    ListRootsRequest,
    ListRootsResult,
    LoggingMessageNotification,
    LoggingMessageNotificationParams,
)
from pydantic import BaseModel

from gateway.errors import ClientSilent
from gateway.handlers.interfaces import InputRequest, InputRequestKind, LogLevel
from gateway.protocol.methods.input_requests import (
    FIRST_WITH_MODES,
    check_response,
    is_valid_response,
    require_capability,
    supports,
    to_session_request,
)
from gateway.protocol.methods.limits import ANSWER_TIMEOUT_S
from gateway.protocol.stdio.progress_gap import ProgressGap

_FIRST_WITH_ELICITATION = "2025-06-18"


_FORMS: Final[Mapping[InputRequestKind, tuple[type[Any], type[BaseModel]]]] = {
    "elicitation": (ElicitRequest, ElicitResult),
    "sampling": (CreateMessageRequest, CreateMessageResultWithTools),
    "roots": (ListRootsRequest, ListRootsResult),
}
"""Requests to the client, each with its result."""


class StdioPeer:
    """The peer of one request. It sends log messages of the client's `levels` only."""

    def __init__(self, ctx: ServerRequestContext[Any, Any], levels: Container[LogLevel]) -> None:
        self._ctx = ctx
        self._levels = levels
        self.progress_gap = ProgressGap()
        self._memory: dict[str, object] = {}

    approval_timeout_s = 0.0
    session = ""

    def can(self, kind: str) -> bool:
        """True if the client declared the capability and its revision has it."""
        revision = self._ctx.protocol_version
        first = FIRST_WITH_MODES if kind == "elicitation.url" else _FIRST_WITH_ELICITATION
        is_known = revision >= first or not kind.startswith("elicitation")
        return is_known and supports(self._ctx.session.client_capabilities, kind)

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Send progress, if the request has a token."""
        await self._ctx.session.report_progress(progress, total, message)
        self.progress_gap.note()

    async def log(self, level: LogLevel, data: object, logger: str | None = None) -> None:
        """Send a log message, unless its level is below the one that the client set."""
        if level in self._levels:
            params = LoggingMessageNotificationParams(level=level, data=data, logger=logger)
            note = LoggingMessageNotification(params=params)
            await self._ctx.session.send_notification(note, related_request_id=self._ctx.request_id)
            self.progress_gap.note()

    async def ask(self, input_requests: Mapping[str, InputRequest]) -> Mapping[str, Mapping[str, Any]]:
        """Send the requests to the client one after the other, and return the responses.

        Raises:
            CapabilityMissing: the client cannot ask its user.
            ClientSilent: a response is late, an error, or does not match the schema of its form.
        """
        for input_request in input_requests.values():
            require_capability(input_request, self.can)
        with anyio.move_on_after(ANSWER_TIMEOUT_S):
            return {key: await self._ask(input_request) for key, input_request in input_requests.items()}
        raise ClientSilent("the client did not respond in time")

    def recall(self, key: str) -> Any:
        """Return a value that `remember` stored; a call has a single round."""
        return self._memory.get(key)

    def remember(self, key: str, value: object) -> None:
        """Store a value while the call runs."""
        self._memory[key] = value

    async def note_intent(self) -> None:
        """Do nothing: the call ends with its request."""

    async def note_wait(self, approval: Mapping[str, str] | None) -> None:
        """Do nothing: progress reports the wait."""

    async def end_stream(self) -> None:
        """Do nothing: standard output stays open until the client closes it."""

    async def _ask(self, input_request: InputRequest) -> Mapping[str, Any]:
        asked = to_session_request(input_request, self._ctx.protocol_version)
        request, result = _FORMS[input_request.kind]
        try:
            response = await self._ctx.session.send_request(request.model_validate(asked, by_name=False), result)
        except (MCPError, ValueError) as error:  # an error, or a result of another form
            raise ClientSilent("the client responded with an error") from error
        found = response.model_dump(by_alias=True, mode="json", exclude_none=True)
        if not is_valid_response(input_request.kind, found):
            raise ClientSilent("the client's response does not match the request")
        check_response(input_request, found)
        return found
