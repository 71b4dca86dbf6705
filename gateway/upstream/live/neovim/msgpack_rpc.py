"""MessagePack-RPC client (Neovim's dialect) over a byte stream; the peer is untrusted.

Long content arrives in parts, so a message is limited to `_MAX_MESSAGE_BYTES`, and each of its lists and maps to
`_MAX_ELEMENTS` elements. A message that violates the protocol, or too many unexpected messages, closes the connection.
"""

import asyncio
import itertools
from collections.abc import Callable, Sequence
from typing import Any, cast

import msgpack

from gateway.domain.refusals import LiveSourceDetached, LiveSourceFailed
from gateway.upstream.byte_streams import ByteStream
from gateway.upstream.live.neovim.limits import (
    MAX_ELEMENTS,
    MAX_ERROR_LENGTH,
    MAX_MESSAGE_BYTES,
    MAX_UNEXPECTED,
    READ_BYTES,
    UNEXPECTED_S,
)

_REQUEST, _RESPONSE, _NOTIFICATION = 0, 1, 2

_codec: Any = msgpack
"""`msgpack` as `Any`, because it has no type stubs."""

NotificationHandler = Callable[[bytes, Sequence[object]], bool]
"""Handles method and parameters of a notification; returns False if it belongs to no pending request."""


class _ProtocolError(Exception):
    """The peer violated the protocol. The message is shown to the author of the source."""


class MsgpackRpc:
    """One connection: sends requests and notifications of the gateway, and receives those of the peer."""

    def __init__(self, stream: ByteStream, notified: NotificationHandler) -> None:
        self._reader, self._writer = stream
        self._notified = notified
        self._ids = itertools.count(1)
        self._next_id = 1
        self._pending: dict[int, asyncio.Future[object]] = {}
        self._unexpected, self._window_start = 0, 0.0
        self.closed: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        """Resolves to the reason when the connection has ended."""

    async def request(self, method: str, *params: object) -> object:
        """Send a request; return the peer's result, with strings as bytes.

        Raises:
            LiveSourceFailed: the peer returned an error.
            LiveSourceDetached: the connection ended before the response.
        """
        number = next(self._ids)
        self._next_id = number + 1
        response: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._pending[number] = response
        try:
            self._send([_REQUEST, number, method, params])
            await self._drain()
            return await response
        finally:
            del self._pending[number]

    def notify(self, method: str, *params: object) -> None:
        """Send a notification, unless the connection has ended."""
        if not self.closed.done():
            self._send([_NOTIFICATION, method, params])

    async def read(self) -> None:
        """Read messages until the connection closes, then fail all pending requests."""
        unpacker = _codec.Unpacker(
            raw=True,
            strict_map_key=False,
            max_buffer_size=MAX_MESSAGE_BYTES,
            max_array_len=MAX_ELEMENTS,
            max_map_len=MAX_ELEMENTS,
        )
        reason = "the editor closed the connection"
        try:
            while piece := await self._reader.read(READ_BYTES):
                unpacker.feed(piece)
                for message in unpacker:
                    self._receive(message)
                await self._writer.drain()
        except _ProtocolError as error:
            reason = f"the editor violated the protocol: {error}"
        except _codec.exceptions.BufferFull:
            reason = f"the editor sent a message of more than {MAX_MESSAGE_BYTES} bytes"
        except (_codec.exceptions.UnpackException, ValueError, RecursionError):
            reason = "the editor sent invalid MessagePack"
        except OSError:
            reason = "the connection to the editor was lost"
        finally:
            self.close(reason)

    def close(self, reason: str) -> None:
        """Close the connection; pending requests fail with the reason. Further calls have no effect."""
        if self.closed.done():
            return
        self.closed.set_result(reason)
        for response in self._pending.values():
            if not response.done():
                response.set_exception(LiveSourceDetached(f"The editor is not attached: {reason}."))
        self._writer.close()

    def _receive(self, message: object) -> None:
        match cast("list[object]", message) if isinstance(message, list) else []:
            case [1, int(number), fault, result] if 0 < number < self._next_id:
                self._respond(number, fault, result)
            case [2, bytes(method), params] if isinstance(params, list):
                if not self._notified(method, cast("list[object]", params)):
                    self._count_unexpected()
            case [0, int(number), bytes(), _]:
                # `rpcrequest` blocks the editor until it receives a response.
                self._send([_RESPONSE, number, "the gateway implements no methods", None])
                self._count_unexpected()
            case _:
                raise _ProtocolError("not a MessagePack-RPC message, or a response to no request")

    def _respond(self, number: int, fault: object, result: object) -> None:
        pending = self._pending.get(number)
        if pending is None or pending.done():  # its request timed out or was cancelled
            self._count_unexpected()
        elif fault is not None:
            pending.set_exception(LiveSourceFailed(f"The editor responded with an error: {error_text(fault)}"))
        else:
            pending.set_result(result)

    def _count_unexpected(self) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._window_start > UNEXPECTED_S:
            self._window_start, self._unexpected = now, 0
        self._unexpected += 1
        if self._unexpected > MAX_UNEXPECTED:  # guard: neovim-unwanted-messages
            raise _ProtocolError(f"more than {MAX_UNEXPECTED} unexpected messages in {UNEXPECTED_S:g} s")

    def _send(self, message: Sequence[object]) -> None:
        if self.closed.done():
            raise LiveSourceDetached(f"The editor is not attached: {self.closed.result()}.")
        self._writer.write(_codec.packb(message))

    async def _drain(self) -> None:
        try:
            await self._writer.drain()
        except OSError:
            raise LiveSourceDetached("The editor is not attached: the connection was lost.") from None


def error_text(fault: object) -> str:
    """Return the message of an editor's error (`[type, message]` or a string), cut to `_MAX_ERROR_CHARS`."""
    if isinstance(fault, list):
        fault = [None, *cast("list[object]", fault)][-1]
    text = fault.decode(errors="replace") if isinstance(fault, bytes) else str(type(fault).__name__)
    return text if len(text) <= MAX_ERROR_LENGTH else f"{text[:MAX_ERROR_LENGTH]}…"
