"""Destination of a URL."""

import pytest

from gateway.upstream.egress.origins import read_url


@pytest.mark.parametrize(
    ("url", "key", "host", "port", "authority", "target"),
    [
        ("http://h", "http://h:80", "h", 80, "h", "/"),
        ("http://h:80/a", "http://h:80", "h", 80, "h", "/a"),
        ("https://h:80/a", "https://h:80", "h", 80, "h:80", "/a"),
        ("https://H.Example:443?q", "https://h.example:443", "h.example", 443, "H.Example", "/?q"),
        ("https://[2001:DB8::1]/", "https://[2001:db8::1]:443", "2001:db8::1", 443, "[2001:DB8::1]", "/"),
        ("http://[::1]:8080/?a:b", "http://[::1]:8080", "::1", 8080, "[::1]:8080", "/?a:b"),
        ("http://h./", "http://h.:80", "h.", 80, "h", "/"),
        ("http://h:0/", "http://h:0", "h", 0, "h:0", "/"),
    ],
)
def test_a_url_is_an_origin_and_a_target(url: str, key: str, host: str, port: int, authority: str, target: str) -> None:
    """RFC 9110 sections 4.2.3 and 7.2: the default port is no other origin, and Host omits it."""
    found = read_url(url)

    assert found is not None
    origin, rest = found
    assert (origin.key, origin.host, origin.port, origin.authority, rest) == (key, host, port, authority, target)
    assert origin.is_tls is url.startswith("https")


@pytest.mark.parametrize("url", ["http://h:65536/", "http://h:99999", "ftp://h/", "http://h/#f", "http:///", ""])
def test_a_url_without_a_destination_has_no_origin(url: str) -> None:
    """Ours: it is refused before anything is looked up."""
    assert read_url(url) is None


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.1", "2130706433", "0177.0.0.1", "0", "127.0.0.1.", "[::1]", "[1.2.3.4]"]
)
def test_a_text_like_an_address_is_never_resolved(host: str) -> None:
    """Ours: the guard reads it as one or refuses it; no resolver finds another meaning."""
    found = read_url(f"http://{host}/")

    assert found is not None
    assert found[0].is_literal


@pytest.mark.parametrize("host", ["h", "1.example", "0x7f000001", "a.1"])
def test_all_other_hosts_are_names(host: str) -> None:
    """Ours: its addresses are judged."""
    found = read_url(f"http://{host}/")

    assert found is not None
    assert not found[0].is_literal
