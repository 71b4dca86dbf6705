"""Permitted requests: URLs, header names and values."""

import pytest

from gateway.upstream.serialize.header_checks import is_header_value, is_sendable_header, is_sendable_url


@pytest.mark.parametrize(
    "url",
    [
        "http://h",
        "https://api.example.com:8443/a/b%20c?d=e&f[]=g",
        "http://[2001:db8::1]:80/",
        "http://h?q",
        "https://h/a;b=c,d:e@f!$'()*+~",
    ],
)
def test_encoded_absolute_urls_are_sendable(url: str) -> None:
    """RFC 3986: http and https with a host."""
    assert is_sendable_url(url)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "/x",
        "//h/x",
        "ftp://h/",
        "ws://h/",
        "file:///etc/passwd",
        "HTTP://h/",
        "http://",
        "http:///x",
        "http://u:p@h/",
        "http://u@h/",
        "http://h\\@e/",
        "http://h/a b",
        "http://h/a\tb",
        "http://h/a\r\nb",
        "http://h/a#b",
        'http://h/"',
        "http://h/<",
        "http://h/é",
        "http://１２７.0.0.1/",  # full-width digits
        "http://h%2e/",
        "http://[fe80::1%25lo]/",
        "http://h:port/",
        "http://h:123456/",
        "http://h/\n",
    ],
)
def test_everything_else_is_not(url: str) -> None:
    """Ours: credentials, fragments, raw characters and other schemes never reach the client library."""
    assert not is_sendable_url(url)


@pytest.mark.parametrize("name", ["X-A", "accept", "Authorization", "Cookie", "a!#$%&'*+-.^_`|~9"])
def test_tokens_are_header_names(name: str) -> None:
    """RFC 9110: a field name is a token."""
    assert is_sendable_header(name)


@pytest.mark.parametrize("name", ["", "a b", "a:", "a\r\n", "é", "(", "Host", "content-length", "TE", "Proxy-X"])
def test_framing_headers_and_other_texts_are_not(name: str) -> None:
    """Ours: only the pool frames messages."""
    assert not is_sendable_header(name)


@pytest.mark.parametrize(
    ("value", "is_good"), [("", True), ("a b\tc", True), (" a", False), ("a\n", False), ("é", False)]
)
def test_header_values_are_visible_ascii(value: str, is_good: bool) -> None:
    """RFC 9110: no control characters, no blanks at the ends."""
    assert is_header_value(value) is is_good
