"""Loopback addresses that a person's own document opens."""

import json

import pytest

from gateway.cli.client.loopback import find_loopback
from gateway.cli.input.documents import DocumentArgument


def _document(root: dict[str, object]) -> DocumentArgument:
    whole = {"openapi": "3.1.0", "info": {"title": "t", "version": "1"}, "paths": {}} | root
    return DocumentArgument(name="d", text=json.dumps(whole))


def test_servers_at_all_three_levels_are_found_exactly() -> None:
    """OpenAPI: servers of the document, a path and an operation, with variables."""
    document = _document(
        {
            "servers": [
                {"url": "http://localhost:{port}/v1", "variables": {"port": {"default": "9000"}}},
                {"url": "https://api.example.com"},
            ],
            "paths": {
                "/a": {
                    "servers": [{"url": "http://127.0.0.1"}],
                    "get": {"servers": [{"url": "https://[::1]:8443"}]},
                }
            },
        }
    )

    assert find_loopback(document, base_url=None) == ("localhost:9000", "127.0.0.1:80", "[::1]:8443")


def test_a_swagger_host_is_found_in_yaml_too() -> None:
    """OpenAPI 2.0: host and schemes make the server."""
    document = DocumentArgument(name="d", text="swagger: '2.0'\nhost: localhost:9000\nschemes: [http]\npaths: {}\n")

    assert find_loopback(document, base_url=None) == ("localhost:9000",)


def test_the_given_base_url_replaces_that_of_the_document() -> None:
    """Ours: a base URL is where calls go, so nothing else is opened."""
    document = _document({"servers": [{"url": "http://localhost:1111"}]})

    assert find_loopback(document, base_url="http://127.0.0.1:9000/api") == ("127.0.0.1:9000",)
    assert find_loopback(document, base_url="https://api.example.com") == ()
    typed = DocumentArgument(name="u", url="http://localhost:8000/openapi.json")
    assert find_loopback(typed, base_url=None) == ("localhost:8000",)


@pytest.mark.parametrize(
    "url",
    [
        "http://10.0.0.5:80",
        "http://169.254.169.254",
        "http://localhost.example.com:80",
        "http://2130706433",
        "http://0.0.0.0:80",
        "ftp://localhost",
        "http://localhost:99999",
        "http://[::1",
    ],
)
def test_nothing_but_loopback_is_opened(url: str) -> None:
    """Ours: a document on this disk may have come from anywhere; other private addresses need the operator's word."""
    document = _document({"servers": [{"url": url, "note": "localhost"}]})

    assert find_loopback(document, base_url=None) == ()


@pytest.mark.parametrize("text", ["localhost: [", "- localhost", "127.0.0.1", "[" * 100_000 + "localhost"])
def test_a_broken_document_opens_nothing_and_is_left_to_the_import(text: str) -> None:
    """Ours: the gateway reports the fault, with line and column."""
    assert find_loopback(DocumentArgument(name="d", text=text), base_url=None) == ()
