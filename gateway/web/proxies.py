"""Client address behind trusted proxies, from the hops of `X-Forwarded-For`."""

import ipaddress
from collections.abc import Iterable

from gateway.web.limits import MAX_HOPS

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Proxies:
    """The proxies whose `X-Forwarded-For` is trusted; the header of any other peer is ignored."""

    def __init__(self, networks: Iterable[str]) -> None:
        self._networks: tuple[Network, ...] = tuple(ipaddress.ip_network(name, strict=False) for name in networks)

    def __bool__(self) -> bool:
        """True if any proxy is trusted."""
        return bool(self._networks)

    def client_of(self, peer: str, headers: Iterable[tuple[bytes, bytes]]) -> str:
        """Return the client address: the nearest address that does not belong to a trusted proxy.

        The search ends after 16 hops, at a malformed hop or at the end of the header; the last valid address is then
        used.
        """
        nearest = _address_of(peer)
        if nearest is None or not self._trusts(nearest):
            return peer
        message = b",".join(value for name, value in headers if name == b"x-forwarded-for")
        for hop in reversed(message.decode("latin-1").rsplit(",", MAX_HOPS)):
            address = _address_of(hop)
            if address is None:
                break
            nearest = address
            if not self._trusts(address):
                break
        return str(nearest)

    def _trusts(self, address: Address) -> bool:
        return any(address in network for network in self._networks)


def _address_of(text: str) -> Address | None:
    """Parse the address in `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1` or `[2001:db8::1]:80`."""
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address
