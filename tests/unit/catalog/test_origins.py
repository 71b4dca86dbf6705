"""Origins as tenants write them, and the shapes of URI templates."""

import pytest

from gateway.catalog.origins import find_origin, read_origins
from gateway.definitions.uri.shapes import shape_of
from gateway.errors import InvalidBody


def test_origins_are_compared_in_one_form() -> None:
    """RFC 6454: case of scheme and host and the default port make no difference."""
    given = ["https://API.example:443/", "https://api.example", "http://b.example:8080", "http://[::1]:80"]
    assert read_origins(given, pointer="/origins") == ("http://[::1]", "http://b.example:8080", "https://api.example")


@pytest.mark.parametrize(
    "text",
    [
        "api.example",
        "ftp://api.example",
        "https://user@api.example",
        "https://api.example/v1",
        "https://api.example?x",
        "https://api.example#x",
        "https://",
        "https://a b.example",
        "https://*.example",
        "null",
    ],
)
def test_a_text_that_is_no_origin_is_refused_with_its_place(text: str) -> None:
    """Ours: an origin is scheme, host and port, and nothing that only looks like one."""
    with pytest.raises(InvalidBody) as refused:
        read_origins(["https://good.example", text], pointer="/origins")
    assert [fault.pointer for fault in refused.value.faults] == ["/origins/1"]


def test_the_origin_of_a_url_is_found_or_none() -> None:
    """Ours: a text that is not a URL has no origin, so nothing is permitted for it."""
    assert find_origin("HTTPS://Api.Example:443/path?q") == "https://api.example"
    assert find_origin("file:///etc/passwd") is None


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("docs://{id}", "docs://{name}", True),
        ("docs://{+path}", "docs://{+rest}", True),
        ("docs://{+path}", "docs://{path}", False),
        ("docs://{a}/{b}", "docs://{b}/{a}", True),
        ("docs://x{?a,b}", "docs://x{?a,c}", False),
        ("docs://x{;a}", "docs://x{;b}", False),
        ("docs://{id}/x", "docs://{id}/y", False),
    ],
)
def test_names_that_no_uri_shows_make_no_difference(one: str, other: str, is_same: bool) -> None:
    """RFC 6570: a simple variable's name is not in the URI, that of a query or path parameter is (RES-2)."""
    assert (shape_of(one) == shape_of(other)) is is_same
