"""One WebSocket of a provider over ASGI: parsed messages, an outbox of limited size, heartbeat and close codes.

`docs/providers.md` describes the protocol.
"""

import asyncio
from collections import deque
from enum import IntEnum
from typing import Any, Final, NoReturn

import structlog
from starlette.types import Receive, Send

from gateway.errors import GatewayError
from gateway.identity.local_token_buckets import TokenBuckets
from gateway.upstream.live.agent import jsonrpc
from gateway.upstream.live.agent.jsonrpc import AgentRequest, AgentResponse
from gateway.web.providers.limits import (
    HEARTBEAT_S,
    MAX_MESSAGE_BYTES,
    MAX_OUTBOX_BYTES,
    MAX_REASON_BYTES,
    MESSAGES_PER_S,
    SEND_S,
)

log = structlog.get_logger(__name__)

MESSAGES_BURST: Final = 200.0
_BYTES_OF_COST: Final = 8 * 1024
"""Each 8 KiB of a message cost as much as one message, because parsing 200 KB of values takes 4 ms."""


class CloseCode(IntEnum):
    """WebSocket close codes that the gateway sends; codes from 4400 are its own."""

    NOT_TEXT = 1003
    TOO_BIG = 1009
    FAILED = 1011
    RESTART = 1012
    BAD_MESSAGE = 4400
    KEY_ENDED = 4401
    SOURCE_GONE = 4404
    TIMEOUT = 4408
    NAME_TAKEN = 4409
    REPLACED = 4410


class ConnectionEnded(Exception):
    """The connection has ended; `code` is the close code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class ProviderConnection:
    """An accepted connection; `serving` sends what `send` and `close` add to the outbox."""

    def __init__(self, receive: Receive, send: Send, *, heartbeat_s: float = HEARTBEAT_S) -> None:
        self._receive = receive
        self._send = send
        self._heartbeat_s = heartbeat_s
        self._pace = TokenBuckets(rate=MESSAGES_PER_S, burst=MESSAGES_BURST, limit=1)
        self._outbox: deque[str] = deque()
        self._unsent = 0
        self._closing: tuple[int, str] | None = None
        self._woken = asyncio.Event()

    def send(self, text: str) -> None:
        """Add a message to the outbox; messages after `close` are dropped."""
        if self._closing is not None:
            return
        self._outbox.append(text)
        self._unsent += len(text)
        if self._unsent > MAX_OUTBOX_BYTES:  # guard: provider-outbox
            self._outbox.clear()
            self.close(CloseCode.TIMEOUT, "the program did not read its messages in time")
        self._woken.set()

    def close(self, code: int, reason: str) -> None:
        """Close the connection after the messages in the outbox; later codes are ignored."""
        if self._closing is None:
            self._closing = code, reason
            self._woken.set()

    def refuse(self, code: int, reason: str) -> NoReturn:
        """Close the connection.

        Raises:
            ConnectionEnded: always.
        """
        self.close(code, reason)
        raise ConnectionEnded(code)

    @property
    def is_closing(self) -> bool:
        """True after `close`."""
        return self._closing is not None

    async def read(self, *, within_s: float | None = None) -> AgentRequest | AgentResponse:
        """Return the next message; close the connection if none arrives within two heartbeats.

        Raises:
            ConnectionEnded: the connection has ended, or is closed because of an invalid message.
        """
        event = await self._next(within_s)
        if event["type"] != "websocket.receive":
            raise ConnectionEnded(self._closing[0] if self._closing else event.get("code") or 1005)
        text = event.get("text")
        if not isinstance(text, str):
            self.refuse(CloseCode.NOT_TEXT, "a message must be a text frame")
        if len(text) > MAX_MESSAGE_BYTES:
            self.refuse(CloseCode.TOO_BIG, f"a message may have at most {MAX_MESSAGE_BYTES} bytes")
        cost = 1 + len(text) / _BYTES_OF_COST
        # A sleep may end a clock tick early, before the bucket covers the cost.
        while (delay := self._pace.take("", cost)) > 0:  # noqa: ASYNC110  # guard: provider-pace
            await asyncio.sleep(delay)
        try:
            return jsonrpc.parse(text)
        except GatewayError as error:
            self.refuse(CloseCode.BAD_MESSAGE, error.message)

    async def write_all(self) -> None:
        """Send the outbox until the connection is closed."""
        try:
            while True:
                while self._outbox:
                    text = self._outbox.popleft()
                    async with asyncio.timeout(SEND_S):
                        await self._send({"type": "websocket.send", "text": text})
                    self._unsent -= len(text)
                if self._closing is not None:
                    code, reason = self._closing
                    async with asyncio.timeout(SEND_S):
                        await self._send({"type": "websocket.close", "code": code, "reason": _cut(reason)})
                    return
                self._woken.clear()
                await self._woken.wait()
        except TimeoutError:
            self.close(CloseCode.TIMEOUT, "the program did not read its messages in time")
        except (OSError, RuntimeError):  # servers report a closed connection in these ways
            return

    async def _next(self, within_s: float | None) -> Any:
        try:
            async with asyncio.timeout(within_s or self._heartbeat_s):
                return await self._receive()
        except TimeoutError:
            if within_s is None:
                self.send(jsonrpc.request("ping", {}, message_id="ping"))
                try:
                    async with asyncio.timeout(self._heartbeat_s):
                        return await self._receive()
                except TimeoutError:
                    pass
            self.refuse(CloseCode.TIMEOUT, "no message in time")


def _cut(reason: str) -> str:
    """Truncate a reason to the length that fits into a close frame."""
    return reason.encode()[:MAX_REASON_BYTES].decode(errors="ignore")
