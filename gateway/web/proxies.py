"""Which address a request comes from when a proxy of ours stands in front: `X-Forwarded-For`, believed hop by hop."""

import ipaddress
from collections.abc import Iterable

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_MOST_HOPS = 16


class Proxies:
    """The proxies that are trusted to say who talks to them; everybody else may write into the header what he likes."""

    def __init__(self, networks: Iterable[str]) -> None:
        self._networks: tuple[Network, ...] = tuple(ipaddress.ip_network(name, strict=False) for name in networks)

    def __bool__(self) -> bool:
        """Whether any is trusted."""
        return bool(self._networks)

    def client_of(self, peer: str, headers: Iterable[tuple[bytes, bytes]]) -> str:
        """The nearest address that no trusted proxy has: who cannot be believed is whom the request comes from."""
        nearest = _address_of(peer)
        if nearest is None or not self._trusts(nearest):
            return peer
        said = b",".join(value for name, value in headers if name == b"x-forwarded-for")
        for hop in reversed(said.decode("latin-1").rsplit(",", _MOST_HOPS)):
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
    """The address in `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1` or `[2001:db8::1]:80`."""
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
