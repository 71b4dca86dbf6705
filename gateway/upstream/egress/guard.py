"""Egress guard: checks each address when a name is resolved, and again when a socket is created.

IP literals skip the first check. The second check cannot be bypassed, because the guard creates every socket, for the
address about to be dialled. An address that is allowed by its name carries the permission in its type (`_Vetted`), so
the guard keeps no state between calls. Code that copies the text loses the permission, and the bare address is checked.

Ports: 80, 443 and 1024 to 65535 of public addresses. Everything else, private addresses included, needs a `host:port`
entry of the operator, in the list for all tenants or that of the requesting tenant (`permitted`). A name on a list may
resolve to public and private addresses, never to link-local, multicast or reserved ones.

All refusals are identical, so that they do not reveal the upstreams of other tenants.
"""

import socket
from collections.abc import Sequence
from typing import TypeAlias

from gateway.errors import BrokenSetting, EgressDenied
from gateway.upstream.egress.addresses import is_private, is_public, read_address
from gateway.upstream.egress.allow_list import FORM, NOTHING, AllowEntry, AllowList, read_entry

DialTarget: TypeAlias = tuple[int | socket.AddressFamily, int | socket.SocketKind, int, str, tuple[object, ...]]

_WEB_PORTS = frozenset({80, 443})
_FIRST_FREE_PORT = 1024
_LAST_PORT = 65535


class _Vetted(str):
    """An address resolved from an allow-listed name, and the allowed port."""

    __slots__ = ("port",)
    port: int


def denied() -> EgressDenied:
    """Return the error, identical for every reason, so that it does not reveal addresses of internal names."""
    return EgressDenied("The gateway is not permitted to connect to the address and port of this upstream.")


class Guard:
    """Checks addresses and creates sockets; `egress_allow` are the operator's entries for all tenants.

    Raises:
        BrokenSetting: an entry does not have the form `host:port`.
    """

    def __init__(self, egress_allow: Sequence[str] = ()) -> None:
        self._global = frozenset(_read_setting(entry) for entry in egress_allow)

    def admit(self, host: str, port: int, addresses: Sequence[str], permitted: AllowList = NOTHING) -> tuple[str, ...]:
        """Return the addresses of a resolved name in a form that `open_socket` accepts.

        Raises:
            EgressDenied: at least one address is not allowed.
        """
        named = (host.lower(), port)
        if named in self._global or named in permitted:  # guard: egress-exact-port
            return tuple(_check_address(address, port) for address in addresses)
        for address in addresses:  # guard: egress-every-address
            if not self.may_dial(address, port, permitted):
                raise denied()
        return tuple(addresses)

    def is_listed(self, entry: AllowEntry, permitted: AllowList) -> bool:
        """True if the entry itself, even a public one, is on the global list or in `permitted`."""
        return entry in self._global or entry in permitted

    def may_dial(self, address: str, port: int, permitted: AllowList = NOTHING) -> bool:
        """True if the address is public and the port allowed, or both are on the global list or in `permitted`."""
        parsed = read_address(address)
        if parsed is None:
            return False
        if (parsed, port) in self._global or (parsed, port) in permitted:  # guard: egress-exact-port-of-an-address
            return True
        # guard: egress-ports
        return is_public(parsed) and (port in _WEB_PORTS or _FIRST_FREE_PORT <= port <= _LAST_PORT)

    def open_socket(self, info: DialTarget, permitted: AllowList = NOTHING) -> socket.socket:
        """Create a socket for this address.

        Raises:
            EgressDenied: the address about to be dialled is not allowed.
        """
        family, kind, protocol, _, target = info
        address, port = target[0], target[1]
        if not isinstance(address, str) or not isinstance(port, int):
            raise denied()
        vetted = isinstance(address, _Vetted) and address.port == port
        if not vetted and not self.may_dial(address, port, permitted):  # guard: egress-at-the-dial
            raise denied()
        opened = socket.socket(family, kind, protocol)
        opened.setblocking(False)
        return opened


def _check_address(address: str, port: int) -> _Vetted:
    parsed = read_address(address)
    if parsed is None or not (is_public(parsed) or is_private(parsed)):  # guard: egress-allowed-names
        raise denied()
    vetted = _Vetted(address)
    vetted.port = port
    return vetted


def _read_setting(text: str) -> AllowEntry:
    entry = read_entry(text)
    if entry is None:
        raise BrokenSetting(f"The egress allow-list has the entry {text!r}; each {FORM}.")
    return entry
