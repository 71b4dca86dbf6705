"""IP addresses to which the gateway may connect.

The module has its own lists, because Python's `is_global` treats several internal ranges as global. Addresses are
parsed before the check, so alternative spellings make no difference.
"""

import ipaddress
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

_DENIED_4 = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "168.63.129.16/32",  # Azure's internal control address, formally public
        "169.254.0.0/16",  # guard: egress-metadata
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.31.196.0/24",
        "192.52.193.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "192.175.48.0/24",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
    )
)
_GLOBAL_6 = IPv6Network("2000::/3")
_DENIED_6 = tuple(IPv6Network(text) for text in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"))

_PRIVATE_4 = tuple(
    IPv4Network(text) for text in ("10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")
)
_PRIVATE_6 = (IPv6Network("::1/128"), IPv6Network("fc00::/7"))

Address = IPv4Address | IPv6Address


def read_address(text: str) -> Address | None:
    """Parse an address; IPv4-mapped IPv6 becomes IPv4. None for a name or a scoped address."""
    if "%" in text:
        return None
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def is_public(address: Address) -> bool:
    """True if every tenant may connect to this address without an allow-list entry."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _DENIED_4)  # guard: egress-table
    # guard: egress-ipv6, egress-transition-networks
    return address in _GLOBAL_6 and not any(address in network for network in _DENIED_6)


def is_private(address: Address) -> bool:
    """True if an operator's own upstream may have this internal address.

    Link-local, multicast and reserved addresses are neither public nor private, because cloud metadata is link-local.
    """
    if isinstance(address, IPv4Address):
        return any(address in network for network in _PRIVATE_4)
    return any(address in network for network in _PRIVATE_6)
