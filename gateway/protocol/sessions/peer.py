"""The peer of a session's request: sends messages through the response sink, receives responses from any replica."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio
import structlog
from mcp_types import ClientCapabilities

from gateway.domain.fairness.task_supervisor import Spawn
from gateway.domain.json_text import decode_json
from gateway.errors import ClientSilent, RedisUnavailable
from gateway.handlers.interfaces import InputRequest, LogLevel
from gateway.protocol.http import jsonrpc
from gateway.protocol.methods.content_kinds import known_messages
from gateway.protocol.methods.input_requests import (
    FIRST_WITH_MODES,
    check_response,
    is_valid_response,
    levels_from,
    require_capability,
    supports,
    to_session_request,
)
from gateway.protocol.methods.limits import ANSWER_TIMEOUT_S
from gateway.protocol.methods.notification_throttle import NotificationThrottle
from gateway.protocol.sessions.limits import ANSWER_POLL_S, APPROVAL_TIMEOUT_S
from gateway.protocol.sessions.response_sink import MessageSink
from gateway.redis.event_bus import EventBus
from gateway.redis.sessions.keys import SessionKeys
from gateway.redis.sessions.log_levels import LogLevels
from gateway.redis.sessions.pending_requests import PendingRequests

log = structlog.get_logger(__name__)

_FIRST_WITH_ELICITATION = "2025-06-18"


@dataclass(frozen=True, slots=True)
class ClientChannel:
    """The Redis stores and the bus for requests to clients and their responses; `spawn` starts background tasks."""

    bus: EventBus
    spawn: Spawn
    pending_requests: PendingRequests
    preferences: LogLevels
    timeout_s: float = ANSWER_TIMEOUT_S
    approval_timeout_s: float = APPROVAL_TIMEOUT_S


class SessionPeer:
    """The peer of one request of a session."""

    def __init__(
        self,
        asking: ClientChannel,
        sink: MessageSink,
        keys: SessionKeys,
        *,
        revision: str,
        capabilities: ClientCapabilities | None,
        token: str | int | None,
    ) -> None:
        self._channel = asking
        self._sink = sink
        self._keys = keys
        self._revision = revision
        self._capabilities = capabilities
        self._token = token
        self._progress: float | None = None
        self._levels: frozenset[LogLevel] | None = None
        self._memory: dict[str, object] = {}
        self._throttle = NotificationThrottle(asking.spawn, self._send_log)

    @property
    def session(self) -> str:
        """The id of the session."""
        return self._keys.session

    @property
    def approval_timeout_s(self) -> float:
        """Seconds that the request may wait for a person; clients time out after about a minute."""
        return self._channel.approval_timeout_s

    def can(self, kind: str) -> bool:
        """True if the client declared the capability and the session's revision has it."""
        if kind.startswith("elicitation") and self._revision < _FIRST_WITH_ELICITATION:
            return False
        if kind == "elicitation.url" and self._revision < FIRST_WITH_MODES:
            return False
        return supports(self._capabilities, kind)

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Send the call's progress; a value that does not increase is dropped."""
        if self._token is None or (self._progress is not None and progress <= self._progress):
            return
        self._progress = progress
        params = {"progressToken": self._token, "progress": progress, "total": total, "message": message}
        await self._throttle.progress(partial(self._notify, "notifications/progress", params))

    async def log(self, level: LogLevel, data: object, logger: str | None = None) -> None:
        """Send a log message, unless its level is below the one that the client set."""
        if self._levels is None:
            self._levels = frozenset(levels_from(await self._min_level()))
        if level in self._levels:
            await self._throttle.log(level, partial(self._send_log, level, data, logger))

    async def ask(self, input_requests: Mapping[str, InputRequest]) -> Mapping[str, Mapping[str, Any]]:
        """Send the requests to the client and wait for all responses.

        Raises:
            CapabilityMissing: the client did not declare a required capability.
            ClientSilent: a response is late, an error or invalid; the client accepts no stream; or the session has
                ended.
            HandlerFailed: the schema of a form is invalid.
            RedisUnavailable: a request or a response could not be stored or read.
        """
        for input_request in input_requests.values():
            require_capability(input_request, self.can)
        names = {key: secrets.token_urlsafe(12) for key in input_requests}
        woken = _RepeatableEvent()
        async with self._channel.bus.listening(self._keys.wake, woken.set):
            try:
                with anyio.move_on_after(self._channel.timeout_s):
                    for key, input_request in input_requests.items():
                        await self._send_request(names[key], input_request)
                    return {
                        key: await self._wait_for_response(names[key], input_request, woken)
                        for key, input_request in input_requests.items()
                    }
                raise ClientSilent("the client did not respond in time")
            except BaseException:
                with anyio.move_on_after(ANSWER_POLL_S, shield=True):
                    await self._cancel_requests(names.values())
                raise

    def recall(self, key: str) -> Any:
        """Return a value that `remember` stored; a call in a session has a single round."""
        return self._memory.get(key)

    def remember(self, key: str, value: object) -> None:
        """Store a value while the call runs."""
        self._memory[key] = value

    async def note_intent(self) -> None:
        """Do nothing: the call ends with its request."""

    async def note_wait(self, approval: Mapping[str, str] | None) -> None:
        """Do nothing: progress reports the wait."""

    async def end_stream(self) -> None:
        """End the connection if the client can resume the stream, which then contains the later messages."""
        await self._sink.detach()

    async def close(self) -> None:
        """Send the delayed notifications, before the response."""
        await self._throttle.close()

    async def _send_log(self, level: LogLevel, data: object, logger: str | None = None) -> None:
        await self._notify("notifications/message", {"level": level, "logger": logger, "data": data})

    async def _send_request(self, name: str, input_request: InputRequest) -> None:
        request = to_session_request(input_request, self._revision)
        params = request.get("params")
        if params is not None and input_request.kind == "sampling":
            params["messages"] = known_messages(params["messages"], self._revision)
        if not await self._sink.send(jsonrpc.request(name, request["method"], params), request_id=name):
            raise ClientSilent("the client accepts no stream, or its session has ended")

    async def _wait_for_response(
        self, name: str, input_request: InputRequest, woken: "_RepeatableEvent"
    ) -> Mapping[str, Any]:
        while True:
            response = await self._channel.pending_requests.get_response(self._keys, name)
            if response is None:
                raise ClientSilent("the session has ended")
            if response:
                await self._channel.pending_requests.close(self._keys, name)
                return _parse_response(response, input_request)
            with anyio.move_on_after(ANSWER_POLL_S):  # the wake-up may be lost
                await woken.wait()

    async def _cancel_requests(self, names: Any) -> None:
        """Send a cancellation for each open request, and close all requests."""
        try:
            for name in names:
                if await self._channel.pending_requests.get_response(self._keys, name) == b"":
                    await self._sink.send(jsonrpc.notification("notifications/cancelled", {"requestId": name}))
                await self._channel.pending_requests.close(self._keys, name)
        except RedisUnavailable:
            log.debug("question_not_withdrawn")

    async def _notify(self, method: str, params: Mapping[str, object]) -> None:
        """Send a notification; it is lost if Redis is unavailable, and the call continues."""
        text = jsonrpc.notification(method, {name: value for name, value in params.items() if value is not None})
        try:
            await self._sink.send(text)
        except RedisUnavailable:
            log.warning("message_lost", method=method)

    async def _min_level(self) -> str:
        try:
            return await self._channel.preferences.level(self._keys) or "debug"
        except RedisUnavailable:
            return "debug"


class _RepeatableEvent:
    """An event that can be awaited repeatedly."""

    def __init__(self) -> None:
        self._event = anyio.Event()

    def set(self) -> None:
        """Wake the waiting task."""
        self._event.set()

    async def wait(self) -> None:
        """Wait for the next set, or return at once if there was one since the last wait."""
        await self._event.wait()
        self._event = anyio.Event()


def _parse_response(text: bytes, input_request: InputRequest) -> Mapping[str, Any]:
    response: dict[str, Any] = decode_json(text)
    result = response.get("result")
    if result is None:
        raise ClientSilent("the client responded with an error")
    if not is_valid_response(input_request.kind, result):
        raise ClientSilent("the client's response does not match the request")
    found: dict[str, Any] = result
    check_response(input_request, found)  # guard: form-content-of-sessions
    return found
