"""Addresses and ports that may be dialled."""

import ipaddress
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import BrokenSetting, EgressDenied
from gateway.upstream.egress.addresses import is_private, is_public, read_address
from gateway.upstream.egress.allow_list import read_stored
from gateway.upstream.egress.guard import DialTarget, Guard

DENIED = [
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "100.64.0.1",
    "100.100.100.200",
    "127.0.0.1",
    "127.255.255.254",
    "168.63.129.16",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.1",
    "192.0.0.192",
    "192.0.2.1",
    "192.31.196.1",
    "192.52.193.1",
    "192.88.99.1",
    "192.168.0.1",
    "192.175.48.1",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "::ffff:0:127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::808:808",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:db8::1",
    "2001:20::1",
    "2002:7f00:1::",
    "2002:a9fe:a9fe::1",
    "3fff::1",
    "4000::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fec0::1",
    "ff02::1",
    "fe80::1%eth0",
    "2606:4700::1%lo",
    "localhost",
    "127.1",
    "2130706433",
    "0177.0.0.1",
    "",
]
PUBLIC = ["1.1.1.1", "8.8.8.8", "93.184.216.34", "172.15.0.1", "172.32.0.1", "100.63.0.1", "100.128.0.1", "192.169.0.1"]
PUBLIC_6 = ["2606:4700:4700::1111", "2a00:1450::1", "2003::1", "2001:200::1", "::ffff:8.8.8.8"]


def target(address: object, port: object = 443) -> DialTarget:
    """Arguments of the guard when a socket is made."""
    family = socket.AF_INET6 if isinstance(address, str) and ":" in address else socket.AF_INET
    return family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (address, port)


@pytest.mark.parametrize("address", DENIED)
def test_an_inner_address_is_refused_by_both_questions(address: str) -> None:
    """Ours: nothing but the public internet is open to a document."""
    guard = Guard()

    assert not guard.may_dial(address, 443)
    with pytest.raises(EgressDenied) as caught:
        guard.admit("api.example.com", 443, [address])
    with pytest.raises(EgressDenied):
        guard.open_socket(target(address))
    assert not address or address not in str(caught.value)


@pytest.mark.parametrize("address", [*PUBLIC, *PUBLIC_6])
def test_a_public_address_is_open(address: str) -> None:
    """Ours: the guard is no allow-list; public upstreams need no entry."""
    guard = Guard()

    assert guard.admit("api.example.com", 443, [address]) == (address,)
    guard.open_socket(target(address)).close()


@given(st.ip_addresses())
def test_private_addresses_of_python_are_never_public(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    """Ours: our table is stricter than the standard library's."""
    read = read_address(str(address))

    assert read is not None
    assert not (is_public(read) and (read.is_private or read.is_multicast or read.is_reserved))
    assert not (is_public(read) and is_private(read))


@pytest.mark.parametrize("port", [0, 1, 22, 25, 53, 110, 143, 445, 465, 587, 993, 1023, 65536, -1])
def test_ports_of_other_protocols_are_refused(port: int) -> None:
    """Ours: below 1024 only 80 and 443 are open."""
    assert not Guard().may_dial("8.8.8.8", port)


@pytest.mark.parametrize("port", [80, 443, 1024, 8080, 65535])
def test_ports_of_the_web_are_open(port: int) -> None:
    """Ours: 80, 443 and everything from 1024."""
    assert Guard().may_dial("8.8.8.8", port)


def test_one_bad_answer_spoils_all() -> None:
    """Ours: every address of a name must pass, in any order."""
    for answers in (["8.8.8.8", "10.0.0.1"], ["10.0.0.1", "8.8.8.8"], ["8.8.8.8", "::1"]):
        with pytest.raises(EgressDenied):
            Guard().admit("api.example.com", 443, answers)


def test_an_allowed_name_may_resolve_to_private_addresses_and_only_its_sockets_open() -> None:
    """Ours: the permission of a name is not a permission of its addresses."""
    guard = Guard(["Billing.internal:8443"])

    (vetted,) = guard.admit("billing.INTERNAL", 8443, ["10.0.0.5"])

    guard.open_socket(target(vetted, 8443)).close()
    for refused in (target("10.0.0.5", 8443), target(vetted, 8444), target(str(vetted)[:], 443)):
        with pytest.raises(EgressDenied):
            guard.open_socket(refused)
    for host, port in (("billing.internal", 443), ("other.internal", 8443), ("billing.internal.", 8443)):
        with pytest.raises(EgressDenied):
            guard.admit(host, port, ["10.0.0.5"])


def test_the_list_of_a_tenant_is_for_its_own_requests() -> None:
    """Ours: the permission of one request is an argument; the guard keeps nothing of it (ISO-5)."""
    guard, permitted = Guard(), read_stored(["billing.internal:8443", "10.0.0.6:8443"])

    (vetted,) = guard.admit("Billing.INTERNAL", 8443, ["10.0.0.5"], permitted)
    guard.open_socket(target(vetted, 8443), permitted).close()
    guard.open_socket(target("10.0.0.6", 8443), permitted).close()
    assert guard.admit("any.name", 8443, ["10.0.0.6"], permitted) == ("10.0.0.6",)
    for refused in ("10.0.0.5", "10.0.0.6"):
        with pytest.raises(EgressDenied):
            guard.admit("billing.internal", 8443, [refused])
        with pytest.raises(EgressDenied):
            guard.open_socket(target(refused, 8443))
        with pytest.raises(EgressDenied):
            guard.admit("billing.internal", 8444, [refused], permitted)
    with pytest.raises(EgressDenied):
        guard.admit("billing.internal", 8443, ["169.254.169.254"], permitted)


@pytest.mark.parametrize(
    "address", ["169.254.169.254", "0.0.0.0", "224.0.0.1", "fe80::1", "::ffff:169.254.169.254", "fe80::1%lo", "x"]
)
def test_an_allowed_name_never_reaches_link_local_or_reserved_addresses(address: str) -> None:
    """Ours: a name that is taken over does not lead to cloud metadata."""
    with pytest.raises(EgressDenied):
        Guard(["billing.internal:443"]).admit("billing.internal", 443, ["10.0.0.5", address])


@pytest.mark.parametrize(
    ("entry", "address", "port"),
    [
        ("10.0.0.5:8080", "10.0.0.5", 8080),
        ("10.0.0.5:8080", "::ffff:10.0.0.5", 8080),
        ("[fd00::5]:8080", "fd00::5", 8080),
        ("[FD00:0::5]:8080", "fd00::5", 8080),
        ("127.0.0.1:22", "127.0.0.1", 22),
        (" 8.8.8.8:25 ", "8.8.8.8", 25),
    ],
)
def test_an_allowed_literal_is_open_at_its_port_only(entry: str, address: str, port: int) -> None:
    """Ours: an entry is an exact address and port, however the address is spelled."""
    guard = Guard([entry])

    guard.open_socket(target(address, port)).close()
    assert guard.admit("any.name", port, [address]) == (address,)
    assert not guard.may_dial(address, 21)


@pytest.mark.parametrize(
    "entry",
    [
        "",
        "host",
        "host:",
        ":80",
        "host:0",
        "host:65536",
        "host:http",
        "*:80",
        "*.internal:80",
        "10.0.0.0/8:80",
        "http://host:80",
        "host:80/x",
        "fd00::5:80",
        "[fd00::5]",
        "[host]:80",
        "127.1:80",
        "2130706433:80",
        "0x7f000001:80",
        "0177.0.0.1:80",
        "a b:80",
        "höst:80",
        "[fe80::1%eth0]:80",
    ],
)
def test_an_entry_that_is_no_exact_host_and_port_stops_the_start(entry: str) -> None:
    """Ours: a mistyped entry is an error, never a wider permission."""
    with pytest.raises(BrokenSetting, match="host:port"):
        Guard([entry])


@pytest.mark.parametrize("info", [target(b"8.8.8.8"), target("8.8.8.8", "443"), target(None)])
def test_a_dial_of_another_shape_is_refused(info: DialTarget) -> None:
    """Ours: an address that the guard does not understand is refused."""
    with pytest.raises(EgressDenied):
        Guard().open_socket(info)
