"""Messages between the supervisor and a worker, over a pair of sockets: JSON objects, each after its length."""

import asyncio
import socket
import struct
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, Self

import orjson

from gateway.app.workers.limits import MAX_REPORT_BYTES

Message = Mapping[str, Any]


class MessageKind(StrEnum):
    """The member `kind` of each message, and the other members."""

    READY = "ready"
    """Of a worker: it serves."""
    FAILED = "failed"
    """Of a worker that ends: `reason`, and `is_setting` if the configuration is at fault."""
    COLLECT = "collect"
    """Of a worker: a request for the metrics of all workers."""
    COLLECTED = "collected"
    """Of the supervisor: `page`, with the metrics of all workers."""
    EXAMINE = "examine"
    """Of the supervisor: a request for a report."""
    REPORT = "report"
    """Of a worker: `page`, with its own metrics."""
    WORKERS = "workers"
    """Of the supervisor: the numbers of workers that are `serving` and `configured`."""
    DRAIN = "drain"
    HASTEN = "hasten"
    """Of the supervisor: the drain begins, or its current wait ends."""


_LENGTH: Final = struct.Struct(">I")


class WorkerChannel:
    """One end of the pair. Messages arrive in order; `receive` returns None after the other process has ended."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, end: socket.socket) -> Self:
        """Take over one end of the pair."""
        end.setblocking(False)
        return cls(*await asyncio.open_unix_connection(sock=end))

    def send(self, kind: MessageKind, **members: object) -> None:
        """Queue a message; it is lost if the other process has ended."""
        encoded = orjson.dumps({"kind": kind, **members})
        if not self._writer.is_closing():
            self._writer.write(_LENGTH.pack(len(encoded)) + encoded)

    async def receive(self) -> Message | None:
        """Return the next message, or None once the other end is closed."""
        try:
            (length,) = _LENGTH.unpack(await self._reader.readexactly(_LENGTH.size))
            if length > MAX_REPORT_BYTES:
                return None
            message: Message = orjson.loads(await self._reader.readexactly(length))
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        return message

    async def flush(self) -> None:
        """Wait until the queued messages are sent, or cannot be."""
        try:
            await self._writer.drain()
        except ConnectionError:
            return

    def close(self) -> None:
        """Close this end."""
        self._writer.close()
