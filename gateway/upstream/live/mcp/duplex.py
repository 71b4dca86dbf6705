"""Sessions over a bidirectional channel, such as HTTP+SSE or the standard streams of a program.

Responses and progress are matched by id. Server requests (elicitation, sampling, roots) and log messages contain no id
of a client request. In a session of one client they are assigned to its newest request. Otherwise they are assigned to
the only running request, and refused if several are running. An abandoned request counts as running until its response
arrives, because the server may still process it.
"""

import asyncio
import itertools
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import structlog

from gateway.domain.fairness.task_supervisor import Spawn
from gateway.domain.identifiers import TenantId
from gateway.domain.refusals import LiveSourceDetached, LiveSourceFailed
from gateway.errors import GatewayError
from gateway.upstream.live.interfaces import LiveClient
from gateway.upstream.live.mcp.conversation import Conversation, Report
from gateway.upstream.live.mcp.limits import MAX_ABANDONED, MAX_MESSAGES, MAX_WAITING, UNSOLICITED_S
from gateway.upstream.live.mcp.messages import (
    METHOD_UNKNOWN,
    InvalidMessage,
    Message,
    RemoteRefusal,
    is_object,
    is_response,
    parse_message,
    write_message,
)
from gateway.upstream.live.mcp.session import (
    ServerFacts,
    SessionExpired,
    begin,
    initialization,
    read_facts,
    with_token,
)
from gateway.upstream.live.mcp.time_limit import TimeLimit

log = structlog.get_logger(__name__)

_MARK = b'"jsonrpc"'
_REQUEST_NOTIFICATIONS = frozenset({"notifications/message", "notifications/cancelled"})


class Channel(Protocol):
    """A transport for messages in both directions."""

    @property
    def tenant(self) -> TenantId:
        """The tenant of the live source."""
        ...

    async def send(self, raw: bytes) -> None:
        """Send one message."""
        ...

    async def receive(self) -> bytes | None:
        """Return the next message; None at the end."""
        ...

    async def close(self) -> None:
        """Close both directions."""
        ...


class Inbox:
    """The received messages of one request.

    If the inbox is full, notifications are dropped, and a server request ends the client request. So a slow client does
    not delay other requests of the channel.
    """

    def __init__(self) -> None:
        self._messages: deque[Message | None] = deque()
        self._changed = asyncio.Event()
        self._count = 0
        self._fault: LiveSourceFailed | None = None

    def fail(self, fault: LiveSourceFailed) -> None:
        """End the request with a fault."""
        self._fault = fault
        self._changed.set()

    def put(self, message: Message | None) -> None:
        """Add a message, or None at the end."""
        self._count += 1
        if self._count > MAX_MESSAGES:  # guard: live-inbox-count
            self._fault = LiveSourceFailed(f"the server sent more than {MAX_MESSAGES:,} messages about one request")
        elif message is None or is_response(message) or len(self._messages) < MAX_WAITING:
            self._messages.append(message)
        elif "id" in message:  # guard: live-inbox-full
            self._fault = LiveSourceFailed(f"more than {MAX_WAITING} messages of the server wait for the client")
        self._changed.set()

    async def read(self) -> Message | None:
        """Return the next message.

        Raises:
            LiveSourceFailed: the request has too many messages, or its response is not a message.
        """
        while not self._messages and self._fault is None:
            self._changed.clear()
            await self._changed.wait()
        if self._fault is not None:
            raise self._fault
        return self._messages.popleft()


class DuplexSession:
    """One session over a channel. A shared session runs requests of several clients concurrently."""

    def __init__(
        self, channel: Channel, report: Report, spawn: Spawn, *, is_shared: bool, identity: bytes = b""
    ) -> None:
        self.identity = identity
        self._spawn = spawn
        self.facts = ServerFacts(revision="")
        self._channel = channel
        self._report = report
        self._is_shared = is_shared
        self.has_one_client = False
        """True if all requests of the session belong to one client."""
        self._ids = itertools.count(1)
        self._running: dict[int, tuple[Inbox, LiveClient | None]] = {}
        self._abandoned: set[int] = set()
        self._reading: asyncio.Task[None] | None = None
        self._ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    @property
    def is_shared(self) -> bool:
        """True if the program behind the channel serves all clients of the attachment."""
        return self._is_shared

    @property
    def has_ended(self) -> bool:
        """True if the channel is closed."""
        return self._ended.done()

    async def open(self, capabilities: frozenset[str], limit: TimeLimit) -> None:
        """Initialize the session; a failure closes the channel."""
        self._reading = asyncio.get_running_loop().create_task(self._read())
        try:
            result = await self.request("initialize", initialization(capabilities), None, limit)
            self.facts = read_facts(result)
            await begin(self, limit)
        except BaseException:
            await self.close()
            raise

    async def request(
        self, method: str, params: Mapping[str, object], client: LiveClient | None, limit: TimeLimit
    ) -> dict[str, Any]:
        """Run one request. If it is abandoned, send `notifications/cancelled` to the server."""
        if self.has_ended:
            raise SessionExpired(f"the connection to the server has ended: {self._ended.result()}")
        number, inbox = next(self._ids), Inbox()
        raw = write_message(id=number, method=method, params=with_token(params, number, client))
        self._running[number] = inbox, client
        is_answered = False
        try:
            await self._channel.send(raw)
            result = await Conversation(inbox.read, self._reply, number, client, limit=limit, report=self._report).run()
            is_answered = True
        except LiveSourceDetached:
            raise LiveSourceDetached(f"the connection to the server ended: {self._reason}") from None
        except RemoteRefusal:
            is_answered = True
            raise
        finally:
            del self._running[number]
            if not is_answered:
                if len(self._abandoned) < MAX_ABANDONED:
                    self._abandoned.add(number)
                self._spawn(self._cancel, number)
        return result

    async def notify(self, method: str) -> None:
        """Send a notification."""
        await self._channel.send(write_message(method=method))

    async def follow(self, opened: Callable[[], None]) -> None:
        """Wait until the channel ends; changes are reported as they arrive."""
        opened()
        raise LiveSourceDetached(await asyncio.shield(self._ended))

    async def close(self) -> None:
        """Close the channel."""
        try:
            if self._reading is not None:
                self._reading.cancel()
                await asyncio.gather(self._reading, return_exceptions=True)
        finally:
            await self._channel.close()

    @property
    def _reason(self) -> str:
        return self._ended.result() if self._ended.done() else "closed"

    async def _cancel(self, number: int) -> None:
        if not self.has_ended:
            await self._channel.send(write_message(method="notifications/cancelled", params={"requestId": number}))

    async def _reply(self, members: Mapping[str, object]) -> None:
        await self._channel.send(write_message(**members))

    async def _read(self) -> None:
        reason, others, began = "the server closed the connection", 0, 0.0
        loop = asyncio.get_running_loop()
        try:
            while (raw := await self._channel.receive()) is not None:
                await asyncio.sleep(0)  # yield to the readers, because a full inbox drops notifications
                if not await self._take(raw):
                    if loop.time() - began > UNSOLICITED_S:
                        began, others = loop.time(), 0
                    others += 1
                    if others > MAX_MESSAGES:  # guard: live-unsolicited-count
                        raise LiveSourceFailed(
                            f"the server sent more than {MAX_MESSAGES:,} messages about no request in a minute"
                        )
        except GatewayError as error:
            reason = error.message
        except Exception:
            reason = "the channel failed"
            log.exception("live_channel_failed")
        finally:
            self._ended.set_result(reason)
            for inbox, _ in list(self._running.values()):
                inbox.put(None)

    async def _take(self, raw: bytes) -> bool:
        """Pass a message to its request; skip what is not a message, such as a line that a program prints."""
        try:
            return self._dispatch(await parse_message(self._channel.tenant, raw))
        except InvalidMessage as fault:
            self._report.skipped(fault.message)
            if _MARK in raw and (number := self._only_running()) is not None:  # possibly its response
                self._running[number][0].fail(fault)
            return False

    def _only_running(self) -> int | None:
        """The only running request, or in a session of one client the newest; None if there is no such request."""
        is_single = self.has_one_client or (len(self._running) == 1 and not self._abandoned)
        return next(reversed(self._running), None) if is_single else None  # guard: live-question-of-one

    def _dispatch(self, message: Message) -> bool:
        """Pass a message to its request; return False if there is none."""
        number: object = None
        if is_response(message):
            number = message.get("id")
            if isinstance(number, int) and len(self._abandoned) < MAX_ABANDONED:
                self._abandoned.discard(number)
        elif message.get("method") == "notifications/progress":
            params = message.get("params")
            number = params.get("progressToken") if is_object(params) else None
        elif "id" in message or message.get("method") in _REQUEST_NOTIFICATIONS:
            number = self._only_running()
            if number is None and "id" in message:
                refusal = {"code": METHOD_UNKNOWN, "message": "the message cannot be assigned to one running request"}
                self._spawn(self._reply, {"id": message["id"], "error": refusal})
        else:
            self._report(message)
        found = self._running.get(number) if isinstance(number, int) else None
        if found is not None:
            found[0].put(message)
        return found is not None
