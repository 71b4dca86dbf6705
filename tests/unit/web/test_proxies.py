"""Hops whose forwarded address is believed."""

import pytest

from gateway.web.proxies import Proxies

TRUSTED = ("10.0.0.0/8", "192.0.2.7", "fd00::/8")


@pytest.mark.parametrize(
    ("peer", "reported", "client"),
    [
        ("203.0.113.5", ["198.51.100.1"], "203.0.113.5"),
        ("10.1.2.3", ["198.51.100.1"], "198.51.100.1"),
        ("10.1.2.3", ["1.1.1.1, 198.51.100.1"], "198.51.100.1"),
        ("10.1.2.3", ["1.1.1.1, 198.51.100.1, 10.9.9.9"], "198.51.100.1"),
        ("10.1.2.3", ["1.1.1.1", "198.51.100.1"], "198.51.100.1"),
        ("10.1.2.3", ["10.0.0.9"], "10.0.0.9"),
        ("10.1.2.3", [], "10.1.2.3"),
        ("10.1.2.3", [""], "10.1.2.3"),
        ("10.1.2.3", ["198.51.100.1, nonsense"], "10.1.2.3"),
        ("10.1.2.3", ["nonsense, 198.51.100.1"], "198.51.100.1"),
        ("10.1.2.3", ["198.51.100.1:4711"], "198.51.100.1"),
        ("fd00::1", ["[2001:db8::5]:443"], "2001:db8::5"),
        ("fd00::1", ["2001:db8::5"], "2001:db8::5"),
        ("::ffff:10.1.2.3", ["198.51.100.1"], "198.51.100.1"),
        ("192.0.2.7", ["198.51.100.1"], "198.51.100.1"),
        ("192.0.2.8", ["198.51.100.1"], "192.0.2.8"),
        ("", ["198.51.100.1"], ""),
        ("/run/proxy.sock", ["198.51.100.1"], "/run/proxy.sock"),
    ],
)
def test_the_nearest_address_that_no_trusted_proxy_has_is_the_client(
    peer: str, reported: list[str], client: str
) -> None:
    """Ours: an address that an untrusted hop wrote into the header is never believed (TEN-5)."""
    headers = [(b"x-forwarded-for", value.encode()) for value in reported]

    assert Proxies(TRUSTED).client_of(peer, [(b"host", b"gw"), *headers]) == client


def test_a_header_without_end_costs_a_few_looks() -> None:
    """Ours: ten thousand hops are not walked (TEN-5)."""
    header = b",".join([b"10.0.0.1"] * 10_000)

    assert Proxies(TRUSTED).client_of("10.0.0.1", [(b"x-forwarded-for", header)]) == "10.0.0.1"


def test_without_trusted_proxies_nothing_is_parsed() -> None:
    """Ours: the default believes no hop."""
    assert not Proxies(())
    assert Proxies(()).client_of("127.0.0.1", [(b"x-forwarded-for", b"1.1.1.1")]) == "127.0.0.1"
