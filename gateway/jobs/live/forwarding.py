"""Forwarding of requests to the replica that holds a live source's attachment.

The client of a request stays at the replica that received it. Progress, log messages and client requests are sent
back. Each replica detects a crash of the other one within about 5 s.
"""

import asyncio
import json
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Self

import anyio
import anyio.lowlevel
import msgspec
import structlog

from gateway.domain.fairness.task_supervisor import TaskSupervisor
from gateway.domain.live_sources import LiveSource
from gateway.domain.refusals import LiveSourceDetached, LiveSourceFailed
from gateway.domain.sessions import UpstreamSessionKey
from gateway.errors import GatewayError, RedisUnavailable
from gateway.jobs.live.limits import LIVENESS_S, MAX_WAITING
from gateway.jobs.live.messages import (
    Answer,
    AnyMessage,
    Ask,
    Begin,
    Cancel,
    Done,
    ForwardedError,
    Log,
    OutsideMessage,
    ProgressReport,
    decode,
    encode,
    read_members,
    write,
)
from gateway.redis.heartbeat import LiveReplicas
from gateway.redis.live.inboxes import ReplicaInboxes
from gateway.redis.live.leases import SourceKey
from gateway.upstream.live.interfaces import CAPABILITIES, LiveClient, LiveMethod

log = structlog.get_logger(__name__)

Serve = Callable[[SourceKey, LiveMethod, Mapping[str, object], LiveClient], Awaitable[Mapping[str, Any]]]
"""Runs a request at an attachment of this replica."""

Deliver = Callable[[UpstreamSessionKey, bytes], Awaitable[None]]
"""Handles a message that a server sent outside the response of a request, which runs at this replica."""


class _Outgoing:
    """A request of this replica that runs at another one."""

    __slots__ = ("holder", "messages")

    def __init__(self, holder: str) -> None:
        self.holder = holder
        self.messages: asyncio.Queue[AnyMessage | None] = asyncio.Queue()


class _Incoming:
    """A request of another replica that runs on this one. Implements `LiveClient` for the attachment."""

    caller = None  # forwarded kinds of requests use no credential

    def __init__(self, begin: Begin, send: Callable[[str, AnyMessage], Awaitable[None]], replica: str) -> None:
        self.scope = anyio.CancelScope()
        self.begin = begin
        self.owner = begin.owner
        self.mirrored: object = None  # servers that read arguments in headers get their requests from each replica
        self._send = send
        self._replica = replica
        self._answers: dict[int, asyncio.Future[Answer]] = {}

    def can(self, kind: str) -> bool:
        """True if the client declared this capability."""
        return kind in self.begin.abilities

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Forward a progress notification."""
        notification = ProgressReport(
            request=self.begin.request, sender=self._replica, progress=progress, total=total, message=message
        )
        await self._send(self.begin.sender, notification)

    async def log(self, level: str, data: object, logger: str | None = None) -> None:
        """Forward a log message."""
        notification = Log(
            request=self.begin.request, sender=self._replica, level=level, data=write(data), logger=logger
        )
        await self._send(self.begin.sender, notification)

    async def ask(self, method: str, params: Mapping[str, object]) -> Mapping[str, Any]:
        """Forward a request to the other replica's client, and wait for the response."""
        number = len(self._answers) + 1
        pending = self._answers[number] = asyncio.get_running_loop().create_future()
        text = write(dict(params))
        client_request = Ask(
            request=self.begin.request, sender=self._replica, question=number, method=method, params=text
        )
        await self._send(self.begin.sender, client_request)
        answer = await pending
        if answer.failure is not None:
            raise answer.failure.error()
        return read_members(answer.result)

    def answer(self, answer: Answer) -> None:
        """Accept the response to a pending client request; other responses are ignored."""
        pending = self._answers.get(answer.question)
        if pending is not None and not pending.done():
            pending.set_result(answer)


class Forwarding:
    """The forwarded requests of one replica, outgoing and incoming; open it with `async with` while the bus is open."""

    def __init__(
        self, inboxes: ReplicaInboxes, replicas: LiveReplicas, serve: Serve, deliver: Deliver, *, replica: str
    ) -> None:
        self._deliver = deliver
        self._inboxes = inboxes
        self._replicas = replicas
        self._serve = serve
        self._replica = replica
        self._outgoing: dict[str, _Outgoing] = {}
        self._incoming: dict[str, _Incoming] = {}
        self._tasks = TaskSupervisor()
        self._stack = AsyncExitStack()
        self.running = self._incoming.keys()
        """The requests of other replicas that run here."""
        self.sent = 0
        """Requests that were sent to other replicas."""

    @property
    def failing(self) -> Sequence[str]:
        """Names of its loops that fail again and again."""
        return [*self._tasks.failing, *self._inboxes.failing]

    async def __aenter__(self) -> Self:
        self._tasks.open(self._watch)
        await self._stack.enter_async_context(self._inboxes.receiving(self.receive))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()
        await self._tasks.close()

    async def request(
        self, holder: str, source: LiveSource, method: LiveMethod, params: Mapping[str, object], *, client: LiveClient
    ) -> Mapping[str, Any]:
        """Run a request at the holder and return the result object.

        Raises:
            LiveSourceDetached: the holder has crashed, or no longer holds the attachment.
            GatewayError: the request failed there.
        """
        name = secrets.token_hex(16)
        begin = Begin(
            request=name,
            sender=self._replica,
            tenant=source.tenant,
            source=source.id,
            method=method,
            params=write(dict(params)),
            abilities=[kind for kind in CAPABILITIES if client.can(kind)],
            owner=client.owner,
        )
        self.sent += 1
        async with self._receiving(name, holder) as messages:
            if not await self._inboxes.send(holder, encode(begin)):
                raise LiveSourceFailed(
                    "too many requests at the replica of the live source; retry later", retry_after_s=1.0
                )
            return await self._handle_messages(holder, messages, client)

    async def pass_on(self, runners: Sequence[str], key: UpstreamSessionKey, message: bytes) -> bool:
        """Give a server's message to the newest of these replicas that is alive; False if there is none.

        Raises:
            RedisUnavailable: the message may be lost.
        """
        for replica in reversed(runners):
            if await self._replicas.is_alive(replica):
                outside = OutsideMessage(request="", sender=self._replica, key=key, message=message)
                return await self._inboxes.send(replica, encode(outside))
        return False

    async def _handle_messages(
        self, holder: str, messages: "asyncio.Queue[AnyMessage | None]", client: LiveClient
    ) -> Mapping[str, Any]:
        """Handle messages until `Done`. Client requests run concurrently, so that `Done` is not delayed."""
        asking: set[asyncio.Task[None]] = set()
        receiving = asyncio.ensure_future(messages.get())
        try:
            while True:
                ended, _ = await asyncio.wait({receiving, *asking}, return_when=asyncio.FIRST_COMPLETED)
                for task in ended & asking:
                    asking.discard(task)
                    task.result()  # the client responds later, in another request
                if receiving not in ended:
                    continue
                message, receiving = receiving.result(), asyncio.ensure_future(messages.get())
                if isinstance(message, Ask):
                    asking.add(asyncio.create_task(self._ask(holder, message, client)))
                    continue
                done = await _relay(message, client)
                if done is not None:
                    return done
        finally:
            for task in (receiving, *asking):
                task.cancel()
            await asyncio.gather(receiving, *asking, return_exceptions=True)

    async def _ask(self, holder: str, message: Ask, client: LiveClient) -> None:
        """Send the request to the client, and its response to the holder."""
        result, failure = None, None
        try:
            result = write(dict(await client.ask(message.method, read_members(message.params))))
        except GatewayError as error:
            failure = ForwardedError.of(error)
        answer = Answer(
            request=message.request, sender=self._replica, question=message.question, result=result, failure=failure
        )
        await self._send(holder, answer)

    @asynccontextmanager
    async def _receiving(self, name: str, holder: str) -> "AsyncGenerator[asyncio.Queue[AnyMessage | None]]":
        """Receive the messages of a request; leaving the block before its end cancels it at the holder."""
        outgoing = self._outgoing[name] = _Outgoing(holder)
        try:
            yield outgoing.messages
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self._send(holder, Cancel(request=name, sender=self._replica))
            raise
        finally:
            del self._outgoing[name]

    async def _send(self, replica: str, message: AnyMessage) -> None:
        """Send a message. Without Redis or with a full inbox it is lost, and the request ends at its time limit."""
        try:
            if not await self._inboxes.send(replica, encode(message)):
                log.warning("inbox_full", replica=replica)
        except RedisUnavailable:
            log.warning("message_lost", replica=replica)

    def receive(self, text: bytes) -> None:
        """Accept a message of another replica."""
        try:
            message = decode(text)
        except msgspec.MsgspecError:
            log.warning("message_unknown")  # a newer release may send other types
            return
        match message:
            case Begin():
                incoming = _Incoming(message, self._send, self._replica)
                # registered before it runs, because its cancellation may be the next message
                self._incoming[message.request] = incoming
                self._tasks.spawn(self._run, incoming)
            case Cancel() | Answer():
                self._settle(message)
            case OutsideMessage():
                self._tasks.spawn(self._deliver, message.key, message.message)
            case _:
                outgoing = self._outgoing.get(message.request)
                if outgoing is None or outgoing.holder != message.sender:
                    return
                is_notification = isinstance(message, ProgressReport | Log)
                if not is_notification or outgoing.messages.qsize() < MAX_WAITING:
                    outgoing.messages.put_nowait(message)

    def _settle(self, message: Cancel | Answer) -> None:
        incoming = self._incoming.get(message.request)
        if incoming is None or incoming.begin.sender != message.sender:
            return
        if isinstance(message, Answer):
            incoming.answer(message)
        else:
            incoming.scope.cancel()

    async def _run(self, incoming: _Incoming) -> None:
        begin, result, failure = incoming.begin, None, None
        try:
            with incoming.scope:
                await anyio.lowlevel.checkpoint()  # cancelled before it began
                key = SourceKey(begin.tenant, begin.source)
                result = write(dict(await self._serve(key, begin.method, read_members(begin.params), incoming)))
        except GatewayError as error:
            failure = ForwardedError.of(error)
        except Exception:
            failure = ForwardedError.of(LiveSourceFailed("the request failed at the replica of the live source"))
            log.exception("forwarded_request_failed")
        finally:
            del self._incoming[begin.request]
        if not incoming.scope.cancelled_caught:
            await self._finish(begin, result, failure)

    async def _finish(self, begin: Begin, result: bytes | None, failure: ForwardedError | None) -> None:
        done = Done(request=begin.request, sender=self._replica, result=result, failure=failure)
        try:
            if await self._inboxes.send(begin.sender, encode(done)):
                return
        except RedisUnavailable:
            log.warning("message_lost", replica=begin.sender)
            return
        full = ForwardedError.of(
            LiveSourceFailed("the result does not fit in the inbox of the replica", retry_after_s=1.0)
        )
        await self._send(begin.sender, Done(request=begin.request, sender=self._replica, failure=full))

    async def _watch(self) -> None:
        """End the requests of replicas that have crashed."""
        while True:
            await anyio.sleep(LIVENESS_S)
            for replica in {one.holder for one in self._outgoing.values()} | {
                one.begin.sender for one in self._incoming.values()
            }:
                if not await self._replicas.is_alive(replica):
                    self._end(replica)

    def _end(self, replica: str) -> None:
        for outgoing in tuple(self._outgoing.values()):
            if outgoing.holder == replica:
                outgoing.messages.put_nowait(None)
        for incoming in tuple(self._incoming.values()):
            if incoming.begin.sender == replica:
                incoming.scope.cancel()


async def _relay(message: AnyMessage | None, client: LiveClient) -> Mapping[str, Any] | None:
    """Forward one message to the client; return the result if it is the last message."""
    match message:
        case None:
            raise LiveSourceDetached("the replica of the live source stopped before the result", retry_after_s=1.0)
        case ProgressReport():
            await client.progress(message.progress, message.total, message.message)
        case Log():
            await client.log(message.level, json.loads(message.data), message.logger)
        case Done():
            if message.failure is not None:
                raise message.failure.error()
            return read_members(message.result)
        case _:
            pass
    return None
