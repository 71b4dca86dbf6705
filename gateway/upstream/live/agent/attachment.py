"""Attachment of one agent: its offer and its running calls, independent of the current connection.

A lost connection can be resumed within `RESUME_S` by a connection with the attachment's token. The attachment and its
calls then continue; a call that the agent does not list at the resumption ends with an error. No call is sent twice.
"""

import asyncio
import hmac
import secrets
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, Protocol, cast

import anyio

from gateway.domain.identifiers import mint
from gateway.domain.live_sources import Discovery
from gateway.domain.members.limits import MAX_URL_LENGTH
from gateway.domain.primitives import Family
from gateway.domain.refusals import LiveSourceDetached, LiveSourceFailed
from gateway.errors import BadInput, GatewayError, NotFound
from gateway.upstream.live.agent import jsonrpc
from gateway.upstream.live.agent.jsonrpc import AgentRequest, AgentResponse
from gateway.upstream.live.agent.limits import (
    CALL_S,
    MAX_FAULT_LENGTH,
    MAX_NOTICE_BYTES,
    MAX_QUESTIONS,
    MAX_WAITING,
    RESUME_S,
)
from gateway.upstream.live.agent.offer import Check, Offer, read_candidates
from gateway.upstream.live.interfaces import NO_COMPLETIONS, LiveClient, LiveListener, LiveMethod

_MAX_NUMBER: Final = 2.0**63
_LEVELS: Final = frozenset({"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"})
_RESOURCE_NOT_FOUND: Final = -32002
_QUESTIONS: Final = frozenset({"elicitation/create", "sampling/createMessage", "roots/list"})
_FAMILIES: Final[Mapping[str, tuple[Family, str]]] = {
    "tools/call": (Family.TOOL, "name"),
    "prompts/get": (Family.PROMPT, "name"),
    "resources/read": (Family.RESOURCE, "uri"),
}


class AgentWire(Protocol):
    """One connection to an agent, with non-blocking methods."""

    def send(self, text: str) -> None:
        """Send one message; a message that cannot be sent closes the connection."""
        ...

    def close(self, code: int, reason: str) -> None:
        """Close the connection after the queued messages."""
        ...


class _Call:
    """One running call: the queue of the agent's messages for its client, and its response.

    `limit` pauses during a request to the client; the end of the call cancels this request.
    """

    def __init__(self, wire: AgentWire, limit: asyncio.Timeout) -> None:
        self.wire = wire
        self.questions = 0
        self._limit = limit
        self._asking: anyio.CancelScope | None = None
        self._waiting: deque[AgentRequest] = deque()
        self._response: AgentResponse | LiveSourceDetached | None = None
        self._changed = asyncio.Event()

    def add(self, message: AgentRequest) -> None:
        """Add a message for the client, unless the call has ended."""
        if self._response is not None:
            return
        if message.id is not None or len(self._waiting) < MAX_WAITING:  # guard: agent-progress-bounded
            self._waiting.append(message)
            self._changed.set()

    def finish(self, response: AgentResponse | LiveSourceDetached) -> None:
        """Set the response; later ones are ignored."""
        if self._response is None:
            self._response = response
            self._waiting = deque(message for message in self._waiting if message.id is None)
            if self._asking is not None:
                self._asking.cancel()  # guard: agent-question-ends
            self._changed.set()

    async def next(self) -> AgentRequest | AgentResponse:
        """Return the next message; after the last one, the response."""
        while not self._waiting:
            if isinstance(self._response, LiveSourceDetached):
                raise self._response
            if self._response is not None:
                return self._response
            self._changed.clear()
            await self._changed.wait()
        return self._waiting.popleft()

    async def ask(self, message: AgentRequest, client: LiveClient) -> None:
        """Forward a request of the agent to the client, and the response to the agent, unless the call ends first."""
        params = {name: value for name, value in message.params.items() if name != "_meta"}
        loop, until = asyncio.get_running_loop(), self._limit.when()
        left_s = None if until is None else until - loop.time()
        self._limit.reschedule(None)  # guard: agent-question-time
        try:
            with anyio.CancelScope() as self._asking:
                try:
                    response = jsonrpc.result(message.id, await client.ask(message.method, params))
                except GatewayError as error:
                    response = jsonrpc.error_response(message.id, error)
                self.wire.send(response)
        finally:
            self._asking = None
            self.questions -= 1
            self._limit.reschedule(None if left_s is None else loop.time() + left_s)


class AgentAttachment:
    """An agent's attachment; `listener` is set by the owner before primitives are registered."""

    is_local = True

    def __init__(
        self, *, title: str, check: Check, completes: bool, reports_updates: bool, listener: LiveListener
    ) -> None:
        self.id = mint("att")
        self._title = title
        self._completes = completes
        self._reports_updates = reports_updates
        self._listener = listener
        self._check = check
        self._offer = Offer()
        self._token = ""
        self._calls: dict[str, _Call] = {}
        self._made = 0
        self._wire: AgentWire | None = None
        self._moved = asyncio.Event()
        self._ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._grace: asyncio.TimerHandle | None = None

    @property
    def running(self) -> int:
        """Number of running calls."""
        return len(self._calls)

    def retire(self) -> None:
        """Do nothing, because all callers share the program."""

    @property
    def has_ended(self) -> bool:
        """True after the end of the attachment."""
        return self._ended.done()

    def accepts(self, token: str) -> bool:
        """True if this is the current resume token."""
        is_known = self._token != "" and not self.has_ended
        return is_known and hmac.compare_digest(token.encode(), self._token.encode())  # guard: agent-resume

    def connect(self, wire: AgentWire, calls: Collection[object] = ()) -> tuple[str, Sequence[str]]:
        """Use this connection; return the next resume token, and the ids of the calls that are still running.

        `calls` are the ids that the agent listed. Other calls end, because the agent does not have them.
        """
        if self._grace is not None:
            self._grace.cancel()
            self._grace = None
        named_calls = {call for call in calls if isinstance(call, str)}
        for call_id, call in tuple(self._calls.items()):
            if call_id in named_calls:
                call.wire = wire
            else:
                call.finish(LiveSourceDetached("the connection to the program was lost during the call"))
        self._wire, self._token = wire, secrets.token_urlsafe(24)
        self._signal()
        return self._token, tuple(call_id for call_id in self._calls if call_id in named_calls)

    def disconnect(self, wire: AgentWire) -> None:
        """Record that the connection was lost; without a resumption, the attachment ends after `RESUME_S`."""
        if self._wire is wire and not self.has_ended:
            self._wire = None
            self._grace = asyncio.get_running_loop().call_later(RESUME_S, self.end, "the connection was lost")

    def end(self, reason: str) -> None:
        """End the attachment and its calls."""
        if self._grace is not None:
            self._grace.cancel()
        if not self._ended.done():
            self._ended.set_result(reason)
        self._wire = None
        for call in self._calls.values():
            call.finish(LiveSourceDetached(f"the program is no longer attached: {reason}"))
        self._signal()

    async def wait_idle(self) -> None:
        """Wait until all calls have ended."""
        while self._calls:
            await self._moved.wait()

    async def wait_closed(self) -> str:
        """Wait until the attachment ends; return the reason."""
        return await asyncio.shield(self._ended)

    async def discover(self) -> Discovery:
        """Return the primitives that the agent offers now."""
        if self.has_ended:
            raise LiveSourceDetached("the program is not attached")
        return Discovery(
            primitives=self._offer.primitives,
            title=self._title,
            notices=self._offer.notices,
            can_subscribe=self._reports_updates,
        )

    async def request(self, method: LiveMethod, params: Mapping[str, object], client: LiveClient) -> Mapping[str, Any]:
        """Run one request; see `LiveAttachment.request`."""
        if method == "completion/complete" and not self._completes:
            return NO_COMPLETIONS
        self._check_offered(method, params)
        limit = asyncio.timeout(CALL_S)  # guard: agent-call-deadline
        try:
            async with limit:
                wire = await self._connected()
                return await self._run(_Call(wire, limit), method, params, client)
        except TimeoutError:
            if not limit.expired():
                raise
            raise LiveSourceFailed(f"the program sent no result within {CALL_S:.0f} s") from None

    async def receive(self, message: AgentRequest | AgentResponse, wire: AgentWire) -> None:
        """Handle one message of the agent that `wire` received, before the next one is handled."""
        if isinstance(message, AgentResponse):
            call = self._calls.get(message.id) if isinstance(message.id, str) else None
            if call is not None:
                call.finish(message)
        elif message.id is None:
            self._notice(message)
        elif message.method in _QUESTIONS:
            self._question(message, wire)
        else:
            await self._answer(message, wire)

    async def _answer(self, message: AgentRequest, wire: AgentWire) -> None:
        match message.method:
            case "ping":
                wire.send(jsonrpc.result(message.id, {}))
                return
            case "provider/register" | "provider/update":
                try:
                    candidates = await read_candidates(message.params, self._check)
                except GatewayError as error:  # the offer is unchanged
                    wire.send(jsonrpc.error_response(message.id, error))
                    return
                if message.method == "provider/register":
                    self._offer.clear()
                notices = self._offer.add(candidates)
            case "provider/withdraw":
                notices = self._offer.remove(message.params)
            case _:
                unknown = BadInput(f"unknown method {message.method[:80]!a}")
                wire.send(jsonrpc.error_response(message.id, unknown, code=jsonrpc.METHOD_NOT_FOUND))
                return
        wire.send(jsonrpc.result(message.id, {"primitives": len(self._offer), "notices": notices}))
        self._listener.changed()

    def _notice(self, message: AgentRequest) -> None:
        match message.method:
            case "notifications/progress":
                self._add(message.params.get("progressToken"), message)
            case "notifications/message":
                self._add(message.progress_token, message)
            case "notifications/resources/updated":
                uri = message.params.get("uri")
                if isinstance(uri, str) and len(uri) <= MAX_URL_LENGTH:  # guard: agent-uri-bounded
                    self._listener.updated(uri)
            case _:
                return

    def _add(self, token: object, message: AgentRequest) -> None:
        call = self._calls.get(token) if isinstance(token, str) else None
        if call is not None and message.size <= MAX_NOTICE_BYTES:  # guard: agent-notice-bounded
            call.add(message)

    def _question(self, message: AgentRequest, wire: AgentWire) -> None:
        token = message.progress_token
        call = self._calls.get(token) if isinstance(token, str) else None
        if call is None:
            refused = BadInput("_meta.progressToken does not name a running call")
            wire.send(jsonrpc.error_response(message.id, refused, code=jsonrpc.INVALID_PARAMS))
        elif call.questions >= MAX_QUESTIONS:  # guard: agent-questions-bounded
            wire.send(
                jsonrpc.error_response(message.id, BadInput(f"more than {MAX_QUESTIONS} open questions of one call"))
            )
        else:
            call.questions += 1
            call.add(message)

    def _check_offered(self, method: str, params: Mapping[str, object]) -> None:
        family, member = _FAMILIES.get(method, (None, ""))
        name = params.get(member)
        if family is None or (isinstance(name, str) and self._offer.has(family, name)):
            return
        if family is Family.RESOURCE and self._offer.has_family(Family.TEMPLATE):
            return
        raise NotFound(f"the program offers no such {family}")

    async def _connected(self) -> AgentWire:
        while self._wire is None:
            if self.has_ended:
                raise LiveSourceDetached(f"the program is not attached: {self._ended.result()}")
            await self._moved.wait()
        return self._wire

    async def _run(
        self, call: _Call, method: str, params: Mapping[str, object], client: LiveClient
    ) -> Mapping[str, Any]:
        self._made += 1
        call_id = f"c{self._made}"
        self._calls[call_id] = call
        meta = params.get("_meta")
        marked = {**cast("dict[str, object]", meta if isinstance(meta, dict) else {}), "progressToken": call_id}
        is_done = False
        try:
            call.wire.send(jsonrpc.request(method, {**params, "_meta": marked}, message_id=call_id))
            while isinstance(message := await call.next(), AgentRequest):
                await _forward(message, call, client)
            is_done = True
        except LiveSourceDetached:
            is_done = True
            raise
        finally:
            del self._calls[call_id]
            self._signal()
            if not is_done:
                over = {"requestId": call_id, "reason": "the call was cancelled by the client, or took too long"}
                call.wire.send(jsonrpc.request("notifications/cancelled", over))
        return _result_of(message)

    def _signal(self) -> None:
        """Wake the tasks that wait for a connection, or for the end of all calls."""
        self._moved.set()
        self._moved = asyncio.Event()


async def _forward(message: AgentRequest, call: _Call, client: LiveClient) -> None:
    """Forward one message of the agent to the client."""
    params = message.params
    if message.method == "notifications/progress":
        progress, text = _number_of(params.get("progress")), params.get("message")
        if progress is not None:
            await client.progress(progress, _number_of(params.get("total")), text if isinstance(text, str) else None)
    elif message.method == "notifications/message":
        level, logger = params.get("level"), params.get("logger")
        if isinstance(level, str) and level in _LEVELS:
            await client.log(level, params.get("data"), logger if isinstance(logger, str) else None)
    else:
        await call.ask(message, client)


def _number_of(value: object) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return cast("float", value) if is_number and abs(cast("float", value)) < _MAX_NUMBER else None


def _result_of(response: AgentResponse) -> Mapping[str, Any]:
    if response.error is not None:
        code, text = response.error
        if code == _RESOURCE_NOT_FOUND:
            raise NotFound("the program has no such resource")
        raise LiveSourceFailed(f"the program refused the call: {text[:MAX_FAULT_LENGTH]}")
    if response.members is None:
        raise LiveSourceFailed("the program's result is not an object")
    return response.members
