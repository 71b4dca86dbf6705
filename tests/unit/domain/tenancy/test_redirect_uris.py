"""Redirect URIs of clients: accepted ones, the comparison, and what a person sees of one."""

import pytest

from gateway.domain.tenancy.redirect_uris import fault_of, form_source_of, host_of, is_registered

ACCEPTED = (
    "https://client.example/callback",
    "https://client.example:8443/a?b=c",
    "https://[2001:db8::1]/callback",
    "http://127.0.0.1/callback",
    "http://127.0.0.1:4711/callback?a=b",
    "http://[::1]:4711/",
    "http://localhost:4711/callback",
    "com.example.app:/callback",
    "cursor://anysphere.cursor-retrieval/oauth",
)
REFUSED = (
    "",
    "x",
    "javascript:alert(1)",
    "JavaScript:alert(1)",
    "data:text/html,x",
    "vbscript:x",
    "file:///etc/passwd",
    "http://client.example/callback",
    "http://127.0.0.1.evil.example/",
    "http://localhost.evil.example/",
    "http://127.0.0.1@evil.example/",
    "http://127.1/",
    "https://user@client.example/",
    "https://user:word@client.example/",
    "https://client.example/#fragment",
    "https://client.example/a b",
    "https://client.example/\r\nlocation:x",
    "https://cl\N{CYRILLIC SMALL LETTER I}ent.example/",
    "https://client.example/\N{RIGHT-TO-LEFT OVERRIDE}",
    "https://client.example:port/",
    "https:///callback",
    "https://[::1/",
    "app:/callback",
    "https://client.example/" + "a" * 500,
)


def test_permitted_redirect_uris() -> None:
    """Ours: https, the own machine and schemes of its own; nothing that runs or looks like one (IDN-2)."""
    assert [uri for uri in ACCEPTED if fault_of(uri, is_trusted=False) is not None] == []
    assert [uri for uri in REFUSED if fault_of(uri, is_trusted=False) is None] == []
    assert [
        uri for uri in ("app:/callback", "javascript:x", "file:///x") if fault_of(uri, is_trusted=True) is None
    ] == ["app:/callback"]


@pytest.mark.parametrize(
    ("requested", "registered", "is_same"),
    [
        ("https://client.example/a", "https://client.example/a", True),
        ("https://client.example/a/", "https://client.example/a", False),
        ("https://client.example/a?b", "https://client.example/a", False),
        ("https://client.example:443/a", "https://client.example/a", False),
        ("https://evil.example/a", "http://127.0.0.1/a", False),
        ("http://127.0.0.1:9/a", "http://127.0.0.1/a", True),
        ("http://127.0.0.1:9/a", "http://127.0.0.1:8/a", True),
        ("http://127.0.0.1:9/b", "http://127.0.0.1:8/a", False),
        ("http://localhost:9/a", "http://127.0.0.1:8/a", False),
        ("http://[::1]:9/a", "http://[::1]/a", True),
        ("", "https://client.example/a", False),
    ],
)
def test_a_redirect_uri_is_compared_as_text(requested: str, registered: str, is_same: bool) -> None:
    """RFC 9700 §4.1.3, RFC 8252 §7.3: exactly, but for the port at the client's own machine (IDN-2)."""
    assert is_registered(requested, (registered,)) is is_same


def test_a_person_sees_where_a_code_goes() -> None:
    """Ours: the host, its port if it is unusual, or the scheme of a program (IDN-2)."""
    shown = {
        "https://client.example/a": ("client.example", "https://client.example"),
        "https://client.example:8443/a": ("client.example:8443", "https://client.example:8443"),
        "http://127.0.0.1:9/a": ("127.0.0.1", "http://127.0.0.1:9"),
        "http://[::1]:9/a": ("[::1]", "http:"),
        "com.example.app:/a": ("com.example.app:", "com.example.app:"),
    }
    assert {uri: (host_of(uri), form_source_of(uri)) for uri in shown} == shown
