"""Connector: resolves a name once per dial, checks each address, and connects a socket to a checked address.

The egress guard checks names, addresses and sockets. TLS is always verified against the name in the URL.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable, Sequence
from typing import TypeVar

from gateway.upstream.egress.allow_list import NOTHING, AllowList
from gateway.upstream.egress.guard import Guard
from gateway.upstream.egress.origins import Origin
from gateway.upstream.egress.resolver import Lookup
from gateway.upstream.http.errors import ConnectedLate, DistrustedTls, NameUnknown, NotConnected, TransportFault

_ADDRESSES = 16
"""Limit on the addresses of a name that are tried."""

_Made = TypeVar("_Made", bound=asyncio.BaseProtocol)


class Connector:
    """Opens connections; `dial_s` is the time for each address, TLS included."""

    def __init__(self, lookup: Lookup, guard: Guard, *, dial_s: float) -> None:
        self._lookup = lookup
        self._guard = guard
        self._dial_s = dial_s
        self._tls = ssl.create_default_context()  # guard: tls

    async def dial(self, origin: Origin, make: Callable[[], _Made], permitted: AllowList = NOTHING) -> _Made:
        """Connect to the first address that accepts, in the resolver's order.

        `permitted` is the allow-list of the requesting tenant, in addition to the list for all tenants.

        Raises:
            EgressDenied: the host or one of its addresses may not be dialled.
            NotConnected: the name has no address, or no address accepted the connection in time.
            DistrustedTls: the handshake or the certificate was not accepted.
        """
        fault: TransportFault = NameUnknown()
        for address in await self._find(origin, permitted):
            try:
                async with asyncio.timeout(self._dial_s):
                    return await self._reach(origin, address, make, permitted)
            except ssl.SSLError:
                raise DistrustedTls from None
            except TimeoutError:
                fault = ConnectedLate()
            except OSError:
                fault = NotConnected()
        raise fault

    async def _find(self, origin: Origin, permitted: AllowList) -> Sequence[str]:
        """Return the addresses to try; an IP literal is checked when its socket is created."""
        if origin.is_literal:
            return (origin.host,)
        try:
            found = await self._lookup.resolve(origin.host, origin.port)
        except OSError:
            raise NameUnknown from None
        return self._guard.admit(origin.host, origin.port, found, permitted)[:_ADDRESSES]

    async def _reach(self, origin: Origin, address: str, make: Callable[[], _Made], permitted: AllowList) -> _Made:
        loop = asyncio.get_running_loop()
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        target = (family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (address, origin.port))
        opened = self._guard.open_socket(target, permitted)
        try:
            await loop.sock_connect(opened, (address, origin.port))
        except BaseException:
            opened.close()
            raise
        plain, made = await loop.create_connection(make, sock=opened)
        if origin.is_tls:
            await self._secure(origin, plain, made)
        return made

    async def _secure(self, origin: Origin, plain: asyncio.WriteTransport, made: asyncio.BaseProtocol) -> None:
        """Start TLS before anything is sent. A failed or cancelled handshake aborts the transport; asyncio does not."""
        if plain.is_closing():  # the server sent bytes before the handshake
            raise ConnectionResetError
        try:
            secure = await asyncio.get_running_loop().start_tls(
                plain,
                made,
                self._tls,
                server_hostname=origin.host.rstrip("."),
                ssl_handshake_timeout=self._dial_s,
            )
            if secure is None:  # the peer closed the connection during the handshake
                raise ConnectionResetError
        except BaseException:
            plain.abort()
            raise
        made.connection_made(secure)
