"""Accepted Host and Origin headers."""

import pytest

from gateway.web.hosts import AllowedHosts, AllowedOrigins, default_hosts


@pytest.mark.parametrize(
    "host",
    ["localhost", "LOCALHOST:8080", "127.0.0.1:1", "[::1]", "[::1]:8080", "gw.example.com", "gw.example.com:443"],
)
def test_the_default_names_are_answered(host: str) -> None:
    """Ours: loopback names on any port, and the host of the public URL."""
    assert AllowedHosts(default_hosts("https://gw.example.com/x")).allows(host.encode())


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "localhost.evil.example",
        "evil-localhost",
        "localhost@evil.example",
        "evil.example@localhost",
        "localhost:80:80",
        "localhost:8080x",
        "localhost:\u0661",
        "localhost,evil.example",
        "localhost ",
        "127.0.0.1.evil.example",
        "127.0.0.2",
        "[::1",
        "::1",
        "[::1]x",
        "2130706433",
        "0.0.0.0",
        "localhost.",
    ],
)
def test_every_other_name_is_refused(host: str) -> None:
    """Ours: a name that only looks like one of ours is not (DNS rebinding)."""
    hosts = AllowedHosts(default_hosts())

    assert not hosts.allows(host.encode("utf-8"))
    assert not hosts.allows(host.encode("utf-8")), "nor when asked again"


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("gw.example.com:8443", "GW.example.com:8443", "gw.example.com:443"),
        ("gw.example.com:8443", "gw.example.com:8443", "gw.example.com"),
        ("*.example.com", "a.b.example.com:80", "example.com"),
        ("*.example.com", "a.example.com", ".example.com"),
        ("*.example.com", "a-b.example.com", "evil.com/.example.com"),
        ("*.example.com", "a.example.com", "evil.com?.example.com"),
        ("*.example.com", "a.example.com", "a.example.com.evil"),
        ("*.example.com", "a.example.com", "aexample.com"),
        ("*.example.com:8443", "a.example.com:8443", "a.example.com:443"),
    ],
)
def test_names_are_matched_as_configured(name: str, good: str, bad: str) -> None:
    """Ours: a port in the configuration counts; a wildcard matches at least one label."""
    hosts = AllowedHosts([name])

    assert hosts.allows(good.encode())
    assert not hosts.allows(bad.encode())


def test_remembered_hosts_are_bounded() -> None:
    """Ours: many good spellings do not fill the memory."""
    hosts = AllowedHosts(["localhost"])

    assert all(hosts.allows(f"localhost:{port}".encode()) for port in range(2000))
    assert all(len(kept) <= 512 for kept in vars(hosts).values())


@pytest.mark.parametrize(
    ("origin", "host", "allowed"),
    [
        ("https://app.example", "gw:8080", True),
        ("HTTPS://App.example", "gw:8080", True),
        ("https://app.example:444", "gw:8080", False),
        ("http://app.example", "gw:8080", False),
        ("https://app.example.evil", "gw:8080", False),
        ("http://gw:8080", "gw:8080", True),
        ("http://gw", "gw:80", True),
        ("https://gw", "gw", True),
        ("https://gw:443", "gw", True),
        ("http://gw:8081", "gw:8080", False),
        ("http://gw", "gw:8080", False),
        ("http://gw:8080.evil", "gw:8080", False),
        ("http://x@gw:8080", "gw:8080", False),
        ("ftp://gw:8080", "gw:8080", False),
        ("gw:8080", "gw:8080", False),
        ("null", "gw:8080", False),
        ("", "gw:8080", False),
    ],
)
def test_an_origin_is_configured_or_our_own(origin: str, host: str, allowed: bool) -> None:
    """MCP: the Origin must be checked; a page of our own host is no other site."""
    origins = AllowedOrigins(["https://app.example/", " ", ""])

    assert origins.allows(origin.encode(), host.encode()) is allowed
