"""Whether the gateway may dial an address, asked twice: when a name is resolved and when a socket is made.

The second question is the one that cannot be gone around: no resolver is asked for IP literals, but every socket is
made through the guard, with the address that is about to be dialled. An address that the operator allowed under a
name carries that permission itself (`_Vetted`), so nothing is remembered between calls; should anything copy the text
on its way, the permission is lost and the dial refused.

Ports: 80, 443 and 1024 to 65535 of public addresses. Everything else, private addresses included, needs an entry
`host:port` in the operator's list. A name on the list may resolve to public and private addresses, never to
link-local, multicast or reserved ones.
"""

import re
import socket
from collections.abc import Sequence
from typing import TypeAlias

from gateway.errors import BrokenSetting, EgressDenied
from gateway.upstream.addresses import Address, is_private, is_public, read_address

DialTarget: TypeAlias = tuple[int | socket.AddressFamily, int | socket.SocketKind, int, str, tuple[object, ...]]

_ENTRY = re.compile(r"(?:\[(?P<v6>[^\[\]]+)\]|(?P<host>[^\[\]:]+)):(?P<port>[0-9]{1,5})")
_NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_-]*[A-Za-z0-9_])?(?:\.[A-Za-z0-9_](?:[A-Za-z0-9_-]*[A-Za-z0-9_])?)*\.?")
_WEB_PORTS = frozenset({80, 443})
_FIRST_FREE_PORT = 1024
_LAST_PORT = 65535


class _Vetted(str):
    """An address that was resolved from an allowed name, and the port it was allowed for."""

    __slots__ = ("port",)
    port: int


def denied() -> EgressDenied:
    """The refusal, the same for every reason: it must not tell what an inner name resolves to."""
    return EgressDenied("The upstream is not at an address and port that this gateway may dial.")


class Guard:
    """Judges addresses and makes the sockets; `egress_allow` holds exact `host:port` entries of the operator.

    Raises:
        BrokenSetting: an entry is not of the form `host:port`.
    """

    def __init__(self, egress_allow: Sequence[str] = ()) -> None:
        names: set[tuple[str, int]] = set()
        literals: set[tuple[Address, int]] = set()
        for entry in egress_allow:
            host, port = _read_entry(entry)
            if isinstance(host, str):
                names.add((host, port))
            else:
                literals.add((host, port))
        self._names = frozenset(names)
        self._literals = frozenset(literals)

    def admit(self, host: str, port: int, addresses: Sequence[str]) -> tuple[str, ...]:
        """The addresses a name resolved to, fit for `open_socket`.

        Raises:
            EgressDenied: at least one of them is not allowed; one bad answer spoils all.
        """
        if (host.lower(), port) in self._names:
            return tuple(_vet(address, port) for address in addresses)
        for address in addresses:
            if not self.may_dial(address, port):
                raise denied()
        return tuple(addresses)

    def may_dial(self, address: str, port: int) -> bool:
        """Whether this literal address and port are open to everybody or on the operator's list."""
        parsed = read_address(address)
        if parsed is None:
            return False
        if (parsed, port) in self._literals:
            return True
        return is_public(parsed) and (port in _WEB_PORTS or _FIRST_FREE_PORT <= port <= _LAST_PORT)

    def open_socket(self, info: DialTarget) -> socket.socket:
        """A socket for exactly this dial.

        Raises:
            EgressDenied: the address about to be dialled is not allowed.
        """
        family, kind, protocol, _, target = info
        address, port = target[0], target[1]
        if not isinstance(address, str) or not isinstance(port, int):
            raise denied()
        vetted = isinstance(address, _Vetted) and address.port == port
        if not vetted and not self.may_dial(address, port):
            raise denied()
        opened = socket.socket(family, kind, protocol)
        opened.setblocking(False)
        return opened


def _vet(address: str, port: int) -> _Vetted:
    parsed = read_address(address)
    if parsed is None or not (is_public(parsed) or is_private(parsed)):
        raise denied()
    vetted = _Vetted(address)
    vetted.port = port
    return vetted


def _read_entry(entry: str) -> tuple[str | Address, int]:
    found = _ENTRY.fullmatch(entry.strip())
    if found is not None and 0 < int(found["port"]) <= _LAST_PORT:
        port = int(found["port"])
        literal = read_address(found["v6"] or found["host"])
        if literal is not None:
            return literal, port
        if found["host"] and _NAME.fullmatch(found["host"]) and not _looks_numeric(found["host"]):
            return found["host"].lower(), port
    raise BrokenSetting(
        f"The egress allow-list has the entry {entry!r}; each must be an exact host:port, such as "
        "billing.internal:8443, 10.0.0.5:8080 or [fd00::5]:8080."
    )


def _looks_numeric(host: str) -> bool:
    """Whether a resolver could read this as a number: 127.1, 0x7f000001, 2130706433."""
    return re.fullmatch(r"(?:0[xX][0-9A-Fa-f]+|[0-9]+)", host.rstrip(".").rpartition(".")[2]) is not None
