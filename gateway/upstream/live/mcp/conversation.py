"""One request to a remote server, and the server's messages until the response.

Progress, log messages and server requests (elicitation, sampling, roots) are forwarded to the client of the request.
Separate tasks wait for the client's responses, so that further messages are still read. A server may also send such
messages outside the response of the request; `take` accepts them.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, cast

from gateway.domain.refusals import LiveSourceDetached, LiveSourceFailed
from gateway.errors import CapabilityMissing, ClientSilent, GatewayError
from gateway.upstream.live.interfaces import LiveClient
from gateway.upstream.live.mcp.limits import MAX_PROGRESS_LENGTH, MAX_QUESTIONS
from gateway.upstream.live.mcp.messages import (
    INTERNAL,
    METHOD_UNKNOWN,
    Message,
    error_of,
    is_object,
    is_response,
    result_of,
    show,
)
from gateway.upstream.live.mcp.time_limit import TimeLimit

Read = Callable[[], Awaitable[Message | None]]
Reply = Callable[[Mapping[str, object]], Awaitable[None]]
"""Sends the response to a server request, from its members."""


class Report(Protocol):
    """Receives what a server sends outside of requests."""

    def __call__(self, message: Message, /) -> None:
        """Handle a notification that belongs to no request, such as a changed list."""
        ...

    def skipped(self, fault: str) -> None:
        """Handle a message that could not be read."""
        ...


QUESTIONS = frozenset({"elicitation/create", "sampling/createMessage", "roots/list"})
_REQUEST_NOTIFICATIONS = frozenset({"notifications/progress", "notifications/message"})
_LEVELS = frozenset({"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"})


class Conversation:
    """The messages of one request.

    `client` is None for requests of the gateway itself, during which server requests are refused.
    """

    def __init__(
        self, read: Read, reply: Reply, request_id: int, client: LiveClient | None, *, limit: TimeLimit, report: Report
    ) -> None:
        self._taken: asyncio.Future[None] | None = None
        self._read = read
        self._reply = reply
        self._id = request_id
        self._client = client
        self._limit = limit
        self._report = report
        self._asking: set[asyncio.Task[None]] = set()
        self._asked = 0

    async def run(self) -> dict[str, Any]:
        """Return the result of the request.

        Raises:
            RemoteRefusal: the server refused the request.
            LiveSourceFailed: the server violated the protocol.
            LiveSourceDetached: the messages ended before the response.
            GatewayError: a message could not be forwarded to the client.
        """
        try:
            while (message := await self._next()) is not None:
                if is_response(message):
                    # `True == 1` in Python: a response with the id true would match the request 1.
                    if message.get("id") != self._id or isinstance(message["id"], bool):  # guard: live-response-id
                        raise LiveSourceFailed("the server sent a response to another request")
                    return result_of(message)
                await self._handle(message)
        finally:
            for task in self._asking:
                task.cancel()
            await asyncio.gather(*self._asking, return_exceptions=True)
        raise LiveSourceDetached("the server ended the response before the result")

    def accept_outside(self) -> None:
        """Accept messages by `take` from now on; each message of the response then costs one task more."""
        self._taken = asyncio.get_running_loop().create_future()

    async def take(self, message: Message) -> None:
        """Handle a message that the server sent outside the response of the request; a fault ends the request."""
        try:
            await self._handle(message)
        except GatewayError as error:
            self._wake(error)
        else:
            self._wake()

    @property
    def asking(self) -> frozenset[asyncio.Task[None]]:
        """The tasks that wait for responses of the client."""
        return frozenset(self._asking)

    def wait_for(self, asking: frozenset[asyncio.Task[None]]) -> None:
        """Stop the clock of this request until the client has responded to the requests of another one."""
        if asking:
            self._limit.pause()
            self._asking.add(asyncio.ensure_future(_wait_for_all(asking)))
            self._wake()

    def _wake(self, error: GatewayError | None = None) -> None:
        if self._taken is None or self._taken.done():
            return
        if error is None:
            self._taken.set_result(None)
        else:
            self._taken.set_exception(error)

    async def _next(self) -> Message | None:
        """Read the next message, while other tasks wait for the client's responses."""
        # The common case without a task of its own: a task costs more than the message.
        if not self._asking and self._taken is None:
            return await self._read()
        reading = asyncio.ensure_future(self._read())
        try:
            while not reading.done():
                await self._wait_for_any(reading)
            return reading.result()
        finally:
            if not reading.done():
                reading.cancel()
                await asyncio.gather(reading, return_exceptions=True)

    async def _wait_for_any(self, reading: "asyncio.Future[Message | None]") -> None:
        """Wait for the next message, a response of the client, or a message outside the response."""
        waiting: set[asyncio.Future[Any]] = {reading, *self._asking}
        if self._taken is not None:
            if self._taken.done():
                # Read for its exception: a fault of an outside message ends this request.
                self._taken.result()
                self._taken = asyncio.get_running_loop().create_future()
            waiting.add(self._taken)
        done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in done & self._asking:
            self._asking.discard(task)
            task.result()
        if not self._asking:
            self._limit.resume()

    async def _handle(self, message: Message) -> None:
        method, params = message.get("method"), message.get("params")
        if not isinstance(method, str):
            raise LiveSourceFailed("the server sent a message without a method")
        members = params if is_object(params) else {}
        if "id" in message:
            await self._take_question(message["id"], method, members)
        elif method not in _REQUEST_NOTIFICATIONS:
            self._report(message)
        elif self._client is not None:
            await notify(self._client, self._id, method, members)

    async def _take_question(self, identifier: object, method: str, params: dict[str, Any]) -> None:
        if not isinstance(identifier, int | str) or isinstance(identifier, bool):
            raise LiveSourceFailed("the server sent a request with an invalid id")
        self._asked += 1
        if self._asked > MAX_QUESTIONS:  # guard: live-question-count
            raise LiveSourceFailed(
                f"the server sent more than {MAX_QUESTIONS} requests to the client during one request"
            )
        if method == "ping":
            await self._reply({"id": identifier, "result": {}})
        elif self._client is None or method not in QUESTIONS:
            refusal = {"code": METHOD_UNKNOWN, "message": f"the client does not support {show(method, 64)}"}
            await self._reply({"id": identifier, "error": refusal})
        else:
            self._limit.pause()
            self._asking.add(asyncio.ensure_future(self._ask_client(self._client, identifier, method, params)))

    async def _ask_client(self, client: LiveClient, identifier: int | str, method: str, params: dict[str, Any]) -> None:
        try:
            response: Mapping[str, object] = {"result": await client.ask(method, without_meta(params))}
        except CapabilityMissing as error:
            response = {"error": error_of(error, METHOD_UNKNOWN)}
        except ClientSilent as error:
            response = {"error": error_of(error, INTERNAL)}
        await self._reply({"id": identifier, **response})


async def _wait_for_all(tasks: frozenset[asyncio.Task[None]]) -> None:
    """Wait until the tasks have ended, whatever their outcome."""
    await asyncio.wait(tasks)


async def notify(client: LiveClient, token: int, method: str, params: Mapping[str, Any]) -> None:
    """Forward progress with this token and log messages to the client; drop other notifications."""
    if method == "notifications/progress" and params.get("progressToken") == token:  # guard: live-progress-token
        done, total, words = params.get("progress"), params.get("total"), params.get("message")
        if is_number(done):
            shown = show(words, MAX_PROGRESS_LENGTH) if isinstance(words, str) else None
            await client.progress(cast(float, done), cast(float, total) if is_number(total) else None, shown)
    elif method == "notifications/message" and params.get("level") in _LEVELS and "data" in params:
        logger = params.get("logger")
        await client.log(params["level"], params["data"], show(logger, 128) if isinstance(logger, str) else None)


def without_meta(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters without `_meta`, which is only valid on one connection."""
    return {name: value for name, value in params.items() if name != "_meta"}


def is_number(value: object) -> bool:
    """True if the value is a JSON number."""
    return isinstance(value, int | float) and not isinstance(value, bool)
