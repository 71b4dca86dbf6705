"""Address range of one client, for limits by address: providers assign each IPv6 client a whole /64."""

import ipaddress

_IPV6_CLIENT = 64  # guard: ipv6-client-network


def client_network(address: str) -> str:
    """Return the address range of one client: an IPv4 address, or the /64 of an IPv6 address; other text unchanged."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.IPv6Network((parsed, _IPV6_CLIENT), strict=False))
