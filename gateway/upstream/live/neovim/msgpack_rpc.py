"""MessagePack-RPC client (Neovim's dialect) over a byte stream; the peer is untrusted.

Messages are small, because long contents arrive in parts. So a message is limited to `_MESSAGE` bytes, and its objects
to a multiple of that. A message that breaks the protocol, or too many at once, end the connection.
"""

import asyncio
import itertools
from collections.abc import Callable, Sequence
from typing import Any, cast

import msgpack

from gateway.domain.refusals import LiveSourceDetached, LiveSourceFailed
from gateway.upstream.byte_streams import ByteStream

_MESSAGE = 256 * 1024
"""Limit on the bytes of a message; the plugin's parts have 48 KiB, and other plugins may broadcast to each channel."""
_LENGTH = 4096
"""Limit on the declared length of a list or map, because it is allocated before its elements arrive."""
_READ = 64 * 1024
_UNWANTED, _WINDOW_S = 1000, 1.0
"""Messages per window that are neither replies nor parts: broadcasts, requests, reports of changes."""
_REASON = 500
_REQUEST, _RESPONSE, _NOTIFICATION = 0, 1, 2

_codec: Any = msgpack
"""The library, which has no types."""

Notified = Callable[[bytes, Sequence[object]], bool]
"""Receives method and parameters of a notification; returns False if no request waited for it."""


class _Broken(Exception):
    """The peer broke the protocol; the message is for the source's author."""


class MsgpackRpc:
    """One connection: requests of the gateway, and the notifications of the peer."""

    def __init__(self, stream: ByteStream, notified: Notified) -> None:
        self._reader, self._writer = stream
        self._notified = notified
        self._ids = itertools.count(1)
        self._next = 1
        self._waiting: dict[int, asyncio.Future[object]] = {}
        self._unwanted, self._window = 0, 0.0
        self.closed: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        """Resolves to the reason when the connection has ended."""

    async def request(self, method: str, *params: object) -> object:
        """Send a request; return the peer's result, with texts as bytes.

        Raises:
            LiveSourceFailed: the peer returned an error.
            LiveSourceDetached: the connection ended before the response.
        """
        number = next(self._ids)
        self._next = number + 1
        response: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._waiting[number] = response
        try:
            self._send([_REQUEST, number, method, params])
            await self._drain()
            return await response
        finally:
            del self._waiting[number]

    def notify(self, method: str, *params: object) -> None:
        """Send a notification, unless the connection has ended."""
        if not self.closed.done():
            self._send([_NOTIFICATION, method, params])

    async def read(self) -> None:
        """Read messages until the connection ends; then every request fails."""
        unpacker = _codec.Unpacker(
            raw=True,
            strict_map_key=False,
            max_buffer_size=_MESSAGE,
            max_array_len=_LENGTH,
            max_map_len=_LENGTH,
        )
        reason = "the editor closed the connection"
        try:
            while piece := await self._reader.read(_READ):
                unpacker.feed(piece)
                for message in unpacker:
                    self._receive(message)
                await self._writer.drain()
        except _Broken as error:
            reason = f"the editor broke the protocol: {error}"
        except _codec.exceptions.BufferFull:
            reason = f"the editor sent a message of more than {_MESSAGE} bytes"
        except (_codec.exceptions.UnpackException, ValueError, RecursionError):
            reason = "the editor sent invalid MessagePack"
        except OSError:
            reason = "the connection to the editor broke"
        finally:
            self.close(reason)

    def close(self, reason: str) -> None:
        """End the connection; waiting requests fail with the reason of the first call."""
        if self.closed.done():
            return
        self.closed.set_result(reason)
        for response in self._waiting.values():
            if not response.done():
                response.set_exception(LiveSourceDetached(f"The editor is not attached: {reason}."))
        self._writer.close()

    def _receive(self, message: object) -> None:
        match cast("list[object]", message) if isinstance(message, list) else []:
            case [1, int(number), fault, result] if 0 < number < self._next:
                self._respond(number, fault, result)
            case [2, bytes(method), params] if isinstance(params, list):
                if not self._notified(method, cast("list[object]", params)):
                    self._count_unwanted()
            case [0, int(number), bytes(), _]:
                # The editor waits for the response of `rpcrequest`, and does nothing else meanwhile.
                self._send([_RESPONSE, number, "the gateway has no methods", None])
                self._count_unwanted()
            case _:
                raise _Broken("not a message of MessagePack-RPC, or a response without a request")

    def _respond(self, number: int, fault: object, result: object) -> None:
        waiting = self._waiting.get(number)
        if waiting is None or waiting.done():  # its request timed out or was cancelled
            self._count_unwanted()
        elif fault is not None:
            waiting.set_exception(LiveSourceFailed(f"The editor refused the request: {text_of(fault)}"))
        else:
            waiting.set_result(result)

    def _count_unwanted(self) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._window > _WINDOW_S:
            self._window, self._unwanted = now, 0
        self._unwanted += 1
        if self._unwanted > _UNWANTED:  # guard: neovim-unwanted-messages
            raise _Broken(f"more than {_UNWANTED} messages in {_WINDOW_S:g} s that no request waits for")

    def _send(self, message: Sequence[object]) -> None:
        if self.closed.done():
            raise LiveSourceDetached(f"The editor is not attached: {self.closed.result()}.")
        self._writer.write(_codec.packb(message))

    async def _drain(self) -> None:
        try:
            await self._writer.drain()
        except OSError:
            raise LiveSourceDetached("The editor is not attached: the connection broke.") from None


def text_of(fault: object) -> str:
    """A bounded text for an error of the editor, which is `[type, message]` or a text."""
    if isinstance(fault, list):
        fault = [None, *cast("list[object]", fault)][-1]
    text = fault.decode(errors="replace") if isinstance(fault, bytes) else str(type(fault).__name__)
    return text if len(text) <= _REASON else f"{text[:_REASON]}…"
