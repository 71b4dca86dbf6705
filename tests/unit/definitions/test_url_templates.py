"""A URL with placeholders always leads to the place that its author meant."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.definitions.uri.url_templates import UrlTemplate
from gateway.errors import HandlerInvalid, TemplateFailed, TemplateInvalid


@pytest.mark.parametrize(
    ("source", "variables", "url"),
    [
        ("https://api.example.com", {}, "https://api.example.com"),
        ("https://api.example.com/", {}, "https://api.example.com/"),
        ("http://[::1]:8080/a%20b?c=d", {}, "http://[::1]:8080/a%20b?c=d"),
        ("https://h/u/{{ id }}/x", {"id": "a b/c?d#e&f"}, "https://h/u/a%20b%2Fc%3Fd%23e%26f/x"),
        ("https://h/u/{{ id }}", {"id": 5}, "https://h/u/5"),
        ("https://h/u?q={{ q }}&r=1", {"q": "a&b=c%20é+"}, "https://h/u?q=a%26b%3Dc%2520%C3%A9%2B&r=1"),
        ("https://h/u?q={{ q }}", {}, "https://h/u?q="),
        ("https://h/u{% if q %}?q={{ q }}{% endif %}", {"q": "x"}, "https://h/u?q=x"),
        ("https://h/u{% if q %}?q={{ q }}{% endif %}", {}, "https://h/u"),
        ("https://h/u/{{ l | first }}/{{ l | last }}", {"l": ["a", "b/c"]}, "https://h/u/a/b%2Fc"),
        ("https://h/u?d={{ d | default: '?' }}", {}, "https://h/u?d=%3F"),
        ("https://h/{{ a }}..{{ b }}", {"a": "x", "b": "y"}, "https://h/x..y"),
    ],
)
def test_values_are_encoded_whole(source: str, variables: dict[str, Any], url: str) -> None:
    """Ours: a value stays within its segment or parameter (TEN-5)."""
    assert UrlTemplate.parse(source).render(variables) == url


@pytest.mark.parametrize(
    "source",
    [
        "",
        "/path",
        "ftp://h/",
        "https://",
        "https:///x",
        "https://user@h/",
        "https://user:pass@h/",
        "https://{{ host }}/x",
        "https://api.{{ zone }}.example.com/x",
        "https://h{{ port }}/x",
        "https://h:0/",
        "https://h:99999/",
        "https://h:x/",
        "https://[::1/",
        "https://é.example/",
        "https://h\\@evil/",
        "https://h/a b",
        "https://h/\u00e9",
        "https://h/a#b",
        "https://h/a%zz",
        "https://h/../a",
        "https://h/a/./b",
        "https://h/%2e%2e/a",
        "https://h/\n",
        "{{ url }}",
        "https://h/" + "x" * 2048,
    ],
)
def test_a_url_that_is_not_fixed_or_not_clean_is_refused(source: str) -> None:
    """Ours: scheme, host and port are the author's; the text is already encoded."""
    with pytest.raises(HandlerInvalid, match="url"):
        UrlTemplate.parse(source)


def test_broken_liquid_is_refused() -> None:
    """Ours: with its line."""
    with pytest.raises(TemplateInvalid):
        UrlTemplate.parse("https://h/{{ x")


@pytest.mark.parametrize(
    "value", ["", None, ".", "..", "%2e%2e", ".%2E", "%252e%252e", "..;x", "a\\b", "a\x00b", "\ud800"]
)
def test_a_value_that_would_lead_elsewhere_fails_the_call(value: object) -> None:
    """Ours: no empty and no dot segments, also after a server has decoded twice (TEN-5)."""
    with pytest.raises(TemplateFailed):
        UrlTemplate.parse("https://h/a/{{ x }}/b").render({"x": value})


def test_a_url_that_grows_too_long_fails_the_call() -> None:
    """Ours: 2,048 characters."""
    with pytest.raises(TemplateFailed, match="longer"):
        UrlTemplate.parse("https://h/?x={{ x }}").render({"x": "a" * 3_000})


def test_each_value_of_the_path_is_shown_to_a_further_check() -> None:
    """Ours: the door's own rules for paths apply as well."""
    seen: list[str] = []
    UrlTemplate.parse("https://h/{{ x }}/{{ y }}?z={{ z }}").render(
        {"x": "a b", "y": "c/d", "z": "e"}, check=seen.append
    )

    assert seen == ["a b", "c/d"]


@given(st.text(max_size=20))
def test_no_value_leaves_its_segment(value: str) -> None:
    """Ours: whatever the value is, host, number of segments and query stay as written."""
    try:
        url = UrlTemplate.parse("https://h/a/{{ x }}/b?q={{ x }}&r=1").render({"x": value})
    except TemplateFailed:
        return
    path, _, query = url.removeprefix("https://h/").partition("?")
    assert path.split("/")[::2] == ["a", "b"]
    assert query.endswith("&r=1")
    assert "#" not in url
    assert "?" not in query
