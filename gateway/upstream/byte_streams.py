"""Byte streams to allow-listed addresses: a unix socket, or a host and port.

The caller checks the allow-lists. TCP connections use the connector of the HTTP client, which resolves the name once
and dials only checked addresses. A unix socket is opened first and then connected by its descriptor, so that a symbolic
link cannot redirect the connection.
"""

import asyncio
import os
import socket
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeAlias, cast

from gateway.upstream.egress.allow_list import AllowEntry, AllowList, write_entry
from gateway.upstream.egress.guard import denied
from gateway.upstream.egress.origins import Origin, read_url

ByteStream: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]

_BUFFERED = 1 << 16
"""Buffer limit of a reader, in bytes; reading from the connection pauses at twice this size."""
_DESCRIPTORS = "/proc/self/fd"


Dial: TypeAlias = Callable[
    [Origin, Callable[[], asyncio.StreamReaderProtocol], AllowList], Awaitable[asyncio.StreamReaderProtocol]
]
"""Connects to an origin whose addresses the guard checks."""


class _TlsStreamProtocol(asyncio.StreamReaderProtocol):
    """Stream protocol that starts the stream with the TLS connection, and ignores the plain one before it."""

    _plain: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the stream if this is the TLS connection."""
        if transport.get_extra_info("sslcontext") is None:
            self._plain = cast("asyncio.WriteTransport", transport)
            return
        self._plain = None
        super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """Add bytes to the stream; bytes before the TLS handshake close the connection."""
        if self._plain is not None:
            self._plain.abort()
        else:
            super().data_received(data)


async def dial_tcp(entry: AllowEntry, dial: Dial, permitted: AllowList, *, is_tls: bool = False) -> ByteStream:
    """Connect to the host and port of an entry, with TLS if `is_tls`.

    Raises:
        EgressDenied: an address of the host may not be dialled.
        TransportFault: no connection was established.
    """
    found = read_url(f"{'https' if is_tls else 'http'}://{write_entry(entry)}")
    if found is None:
        raise denied()
    accepted: list[ByteStream] = []

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted.append((reader, writer))

    def make() -> asyncio.StreamReaderProtocol:
        protocol = _TlsStreamProtocol if is_tls else asyncio.StreamReaderProtocol
        return protocol(asyncio.StreamReader(_BUFFERED), accept)

    await dial(found[0], make, permitted)
    return accepted[-1]


async def dial_unix(path: str) -> ByteStream:
    """Connect to the unix socket at exactly this path, which must not contain a symbolic link.

    Raises:
        EgressDenied: a part of the path is a symbolic link, or the file is not a socket.
        OSError: the path does not exist, or no program accepts connections.
    """
    descriptor = _open_socket(path)
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.setblocking(False)
        await asyncio.get_running_loop().sock_connect(connection, f"{_DESCRIPTORS}/{descriptor}")
        return await asyncio.open_unix_connection(sock=connection, limit=_BUFFERED)
    except BaseException:
        connection.close()
        raise
    finally:
        os.close(descriptor)


def _open_socket(path: str) -> int:
    """Return a descriptor of the socket, which stays valid if the path is replaced later."""
    if not hasattr(os, "O_PATH"):  # only Linux can connect by descriptor; other systems would resolve the path again
        raise denied()
    descriptor = os.open(path, os.O_PATH | os.O_NOFOLLOW)
    is_itself = str(Path(f"{_DESCRIPTORS}/{descriptor}").readlink()) == path
    if not is_itself or not stat.S_ISSOCK(os.fstat(descriptor).st_mode):  # guard: egress-socket-path
        os.close(descriptor)
        raise denied()
    return descriptor
