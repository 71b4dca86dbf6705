"""Calls of 2026-07-28 that need responses from the client: each round is a separate request, at any replica.

The client receives the sealed state of the call (`requestState`), and returns the state with its responses. Before the
state is decoded here, `gateway.protocol.stateless.request_state` opens the seal. It verifies the principal, the
primitive, the arguments and the age of the state, and that the state was not used before. With a state, only responses
to the requests that the state names are used. Without a state, a client may send responses in advance. They are used
for the handler's requests, but never for requests of the gateway itself, such as a confirmation.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, cast

import msgspec
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, LoggingMessageNotification, LoggingMessageNotificationParams
from mcp_types import LOG_LEVEL_META_KEY as LOG_LEVEL
from pydantic import BaseModel

from gateway.domain.fairness.task_supervisor import Spawn
from gateway.errors import ClientSilent, HandlerFailed
from gateway.handlers.interfaces import InputRequest, InputRequestKind, InputRequired, LogLevel
from gateway.protocol.methods.input_requests import (
    check_response,
    is_valid_response,
    levels_from,
    require_capability,
    supports,
    to_wire_request,
)
from gateway.protocol.methods.notification_throttle import NotificationThrottle
from gateway.protocol.request_context import SdkContext
from gateway.protocol.stateless.limits import MAX_STATE_BYTES

_GATEWAY_KEY_MARK = "/"
"""Marks the gateway's own keys, such as `gateway/confirm`; a key that a tenant declares has no slash."""


class RoundState(msgspec.Struct, frozen=True, kw_only=True):
    """The state after a round of a call: responses, stored values, kinds of the open requests, and a nonce."""

    answers: dict[str, dict[str, Any]] = {}
    memory: dict[str, Any] = {}
    asked: dict[str, InputRequestKind] = {}
    nonce: str = ""


class StatelessPeer:
    """The peer of one request of 2026-07-28, or of a task; without `ctx`, the client receives no notifications.

    `note_intent` calls `on_intent`, and `note_wait` calls `on_wait`; a task sets both.
    """

    session = ""

    def __init__(
        self,
        ctx: SdkContext | None,
        before: RoundState,
        answers: Mapping[str, dict[str, Any]],
        early_answers: Mapping[str, dict[str, Any]],
        *,
        spawn: Spawn,
    ) -> None:
        self._ctx = ctx
        self.capabilities = None if ctx is None else ctx.session.client_capabilities
        self.approval_timeout_s = 0.0
        """Seconds that a call may wait for another person; unbounded for a task."""
        self.on_intent: Callable[[], Awaitable[None]] | None = None
        self.on_wait: Callable[[Mapping[str, str] | None], Awaitable[None]] | None = None
        self.answers = {**before.answers, **answers}
        self.memory = dict(before.memory)
        self._early_answers = early_answers
        self._progress: float | None = None
        self._levels = frozenset[LogLevel]() if ctx is None else frozenset(levels_from((ctx.meta or {}).get(LOG_LEVEL)))
        self._throttle = NotificationThrottle(spawn, self._send_log)

    def can(self, kind: str) -> bool:
        """True if the request declared the capability."""
        return supports(self.capabilities, kind)

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Send the call's progress; a value that does not increase is dropped."""
        if self._progress is None or progress > self._progress:
            self._progress = progress
            await self._throttle.progress(partial(self._send_progress, progress, total, message))

    async def log(self, level: LogLevel, data: object, logger: str | None = None) -> None:
        """Send a log message, if this request enabled its level."""
        if level in self._levels:
            await self._throttle.log(level, partial(self._send_log, level, data, logger))

    async def ask(self, input_requests: Mapping[str, InputRequest]) -> Mapping[str, Mapping[str, Any]]:
        """Return the responses that the client sent in this or earlier rounds, or in advance.

        Raises:
            InputRequired: a response is missing.
            CapabilityMissing: the client did not declare a required capability.
            ClientSilent: the content of a response does not match the schema of its form.
            HandlerFailed: the schema of a form is invalid.
        """
        for key, input_request in input_requests.items():
            if key in self.answers:
                check_response(input_request, self.answers[key])  # guard: form-content-of-rounds
        missing = {key: input_request for key, input_request in input_requests.items() if key not in self.answers}
        for input_request in missing.values():
            require_capability(input_request, self.can)
        for key in [key for key, input_request in missing.items() if self._is_answered_early(key, input_request)]:
            self.answers[key] = self._early_answers[key]
            del missing[key]
        if missing:
            raise InputRequired(missing, {"answers": self.answers, "memory": self.memory})
        return {key: self.answers[key] for key in input_requests}

    def recall(self, key: str) -> Any:
        """Return a value that an earlier round stored."""
        return self.memory.get(key)

    def remember(self, key: str, value: object) -> None:
        """Store a value in the state that the client returns in the next round."""
        self.memory[key] = value

    async def note_intent(self) -> None:
        """Notify the task of the call; does nothing for a call that ends with its request."""
        if self.on_intent is not None:
            await self.on_intent()

    async def note_wait(self, approval: Mapping[str, str] | None) -> None:
        """Notify the task of the call; any other call of this revision waits for no person."""
        if self.on_wait is not None:
            await self.on_wait(approval)

    async def end_stream(self) -> None:
        """Do nothing: streams of this revision cannot be resumed."""

    async def close(self) -> None:
        """Send the delayed notifications, before the response."""
        await self._throttle.close()

    def detach(self) -> None:
        """Drop all further notifications, because the response was sent."""
        self._ctx = None

    async def _send_progress(self, progress: float, total: float | None, message: str | None) -> None:
        if self._ctx is not None:
            await self._ctx.session.report_progress(progress, total, message)

    async def _send_log(self, level: LogLevel, data: object, logger: str | None = None) -> None:
        if self._ctx is None:
            return
        params = LoggingMessageNotificationParams(level=level, data=data, logger=logger)
        note = LoggingMessageNotification(params=params)
        await self._ctx.session.send_notification(note, related_request_id=self._ctx.request_id)

    def _is_answered_early(self, key: str, input_request: InputRequest) -> bool:
        response = self._early_answers.get(key)
        if response is None or not is_valid_response(input_request.kind, response):
            return False
        try:
            check_response(input_request, response)
        except ClientSilent:
            return False  # ignored, because the gateway has not sent this request yet
        return True


def resume_peer(
    ctx: SdkContext, state: str | None, answers: Mapping[str, BaseModel] | None, *, spawn: Spawn
) -> StatelessPeer:
    """The peer of a request, with the state and the client responses that the request contains.

    Raises:
        MCPError: the state or a response is malformed.
    """
    before = RoundState() if state is None else decode_state(state)
    client_responses: Mapping[str, BaseModel] = answers or {}
    requested_responses: dict[str, dict[str, Any]] = {}
    for key, kind in before.asked.items():
        if key in client_responses:
            response = _to_json_object(client_responses[key])
            if not is_valid_response(kind, response):
                raise MCPError(INVALID_PARAMS, f"inputResponses/{key[:64]} does not match its request")
            requested_responses[key] = response
    early_answers = {
        key: _to_json_object(client_responses[key])
        for key in client_responses
        if state is None and _GATEWAY_KEY_MARK not in key
    }
    return StatelessPeer(ctx, before, requested_responses, early_answers, spawn=spawn)


def _to_json_object(response: BaseModel) -> dict[str, Any]:
    return response.model_dump(by_alias=True, mode="json", exclude_none=True)


def input_required(raised: InputRequired, *, nonce: str) -> dict[str, Any]:
    """The result with requests to the client; its state is not sealed yet.

    Raises:
        HandlerFailed: the state has more than `MAX_STATE_BYTES` characters, or contains a value that is not JSON.
    """
    saved_state = cast(dict[str, dict[str, Any]], raised.state)
    rounds = RoundState(
        answers=saved_state.get("answers", {}),
        memory=saved_state.get("memory", {}),
        asked={key: input_request.kind for key, input_request in raised.input_requests.items()},
        nonce=nonce,
    )
    try:
        state = msgspec.json.encode(rounds).decode()
    except (TypeError, ValueError) as error:
        raise HandlerFailed("a stored value of the call is not JSON") from error
    if len(state) > MAX_STATE_BYTES:
        raise HandlerFailed(f"the state of the call between its rounds is larger than {MAX_STATE_BYTES} bytes")
    input_requests = {key: to_wire_request(input_request) for key, input_request in raised.input_requests.items()}
    return {"resultType": "input_required", "inputRequests": input_requests, "requestState": state}


def decode_state(state: str) -> RoundState:
    """Decode a state whose seal was valid.

    Raises:
        MCPError: the content is not a valid state.
    """
    try:
        return _decode(state)
    except msgspec.MsgspecError:
        raise MCPError(INVALID_PARAMS, "Invalid or expired requestState") from None


_decode = msgspec.json.Decoder(RoundState).decode
