"""Definitions of resources and resource templates keep their contract."""

from typing import Any

import pytest

from gateway.definitions.contract.resources import validate_resource_definition, validate_resource_template_definition
from gateway.errors import ResourceValidationError


def resource(**more: Any) -> dict[str, Any]:
    return {"uri": "notes://a/1", "name": "note"} | more


def template(**more: Any) -> dict[str, Any]:
    return {"uriTemplate": "notes://{id}", "name": "notes"} | more


def test_a_resource_is_listed_as_it_was_given() -> None:
    """MCP: uri, name and all optional members (RES-1)."""
    raw = resource(
        title="A note",
        description="One.\nTwo.",
        mimeType="text/plain; charset=utf-8",
        size=12,
        annotations={"audience": ["user", "assistant"], "priority": 0.5, "lastModified": "2030-01-31T12:00:00Z"},
        icons=[{"src": "data:image/png;base64,AAAA"}],
        _meta={"k": 1},
    )

    assert validate_resource_definition(raw).to_wire() == raw
    assert validate_resource_definition(resource()).to_wire() == resource()


def test_a_template_is_listed_as_it_was_given() -> None:
    """MCP: uriTemplate, name and all optional members (RES-2)."""
    raw = template(title="T", description="D", mimeType="application/json", annotations={}, icons=[], _meta={})
    definition = validate_resource_template_definition(raw)

    assert definition.to_wire() == raw
    assert definition.template.match("notes://5") == {"id": "5"}


@pytest.mark.parametrize(
    "uri", ["a:b", "http://h/p?q#f", "test://static-text", "urn:isbn:1", "file:///a%20b", "x+y.z-1:/[::1]"]
)
def test_an_absolute_uri_is_taken(uri: str) -> None:
    """RFC 3986: a scheme and something behind it."""
    assert validate_resource_definition(resource(uri=uri)).uri == uri


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "note",
        "/note",
        "1a:b",
        "a:",
        "a b:c",
        "a://b c",
        "a://é",
        "a://b\n",
        "a://b%zz",
        "a://b#c#d",
        "a:" + "b" * 2048,
        5,
    ],
)
def test_a_text_that_is_no_absolute_uri_is_refused(uri: object) -> None:
    """RFC 3986: no spaces, no control characters, nothing relative, at most 2,048 characters."""
    with pytest.raises(ResourceValidationError, match="uri"):
        validate_resource_definition(resource(uri=uri))


@pytest.mark.parametrize(
    ("raw", "pointer"),
    [
        ({"name": "x"}, "/uri"),
        ({"uri": "a:b"}, "/name"),
        (resource(name=""), "/name"),
        (resource(mimeType="text"), "/mimeType"),
        (resource(mimeType="text/plain\r\nX: y"), "/mimeType"),
        (resource(mimeType="text/plain;\r\nX: y"), "/mimeType"),
        (resource(mimeType="text/plain;\u2003x=y"), "/mimeType"),
        (resource(size=-1), "/size"),
        (resource(size=1.5), "/size"),
        (resource(size=True), "/size"),
        (resource(size=2**60), "/size"),
        (resource(annotations={"audience": ["system"]}), "/annotations/audience/0"),
        (resource(annotations={"audience": "user"}), "/annotations/audience"),
        (resource(annotations={"priority": 2}), "/annotations/priority"),
        (resource(annotations={"priority": True}), "/annotations/priority"),
        (resource(annotations={"lastModified": "yesterday"}), "/annotations/lastModified"),
        (resource(annotations={"readOnlyHint": True}), "/annotations/readOnlyHint"),
        (resource(uriTemplate="a:{b}"), "/uriTemplate"),
        (resource(text="x"), "/text"),
        ([], ""),
    ],
)
def test_a_broken_resource_is_refused_where_it_is_broken(raw: object, pointer: str) -> None:
    """Ours: strict, each fault with its place (RES-1)."""
    with pytest.raises(ResourceValidationError) as caught:
        validate_resource_definition(raw)

    assert pointer in [fault.pointer for fault in caught.value.faults]


@pytest.mark.parametrize(
    ("raw", "pointer", "reason"),
    [
        ({"name": "x"}, "/uriTemplate", "missing"),
        (template(uriTemplate="notes://plain"), "/uriTemplate", "no variable"),
        (template(uriTemplate="notes://{a}{b}"), "/uriTemplate", "text must separate"),
        (template(uriTemplate="notes://{a"), "/uriTemplate", "missing"),
        (template(uriTemplate="{scheme}://x"), "/uriTemplate", "literal scheme"),
        (template(uriTemplate="notes{x}"), "/uriTemplate", "literal scheme"),
        (template(size=5), "/size", "not a known field"),
        (template(uri="a:b"), "/uri", "not a known field"),
    ],
)
def test_a_broken_template_is_refused_with_the_reason(raw: object, pointer: str, reason: str) -> None:
    """Ours: ambiguous templates included (RES-2)."""
    with pytest.raises(ResourceValidationError) as caught:
        validate_resource_template_definition(raw)

    assert [(fault.pointer, reason in fault.reason) for fault in caught.value.faults][:1] == [(pointer, True)]
