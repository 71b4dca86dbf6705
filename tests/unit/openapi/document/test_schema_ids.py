"""References by a name that the document or a schema has, besides the way to it."""

from collections.abc import Mapping
from typing import Any

import pytest

from gateway.domain.updates.import_reports import Status
from tests.support.openapi import (
    accepts,
    body_of,
    compile_it,
    definition_of,
    document,
    fate,
    input_of,
    operation,
    with_body,
)

INTEGER = {"type": "integer"}
PAGE = {"name": "page", "in": "query", "schema": INTEGER}
LEAF = {"$dynamicAnchor": "node", "type": "object", "properties": {"n": INTEGER}}


def paged(ref: str, **more: Any) -> dict[str, Any]:
    """A document with one operation whose one parameter is this reference."""
    return operation({"parameters": [{"$ref": ref}]}, components={"parameters": {"Page": PAGE}}, **more)


@pytest.mark.parametrize("version", ["3.0.3", "3.1.0", "3.2.0"])
@pytest.mark.parametrize("ref", ["api.yaml", "./api.yaml", "/docs/api.yaml", "https://example.com/docs/api.yaml"])
def test_a_document_may_refer_to_itself_by_the_url_it_came_from(version: str, ref: str) -> None:
    """RFC 3986 section 5.1.3: a document that was retrieved from a URL is the one that the URL names."""
    written = paged(f"{ref}#/components/parameters/Page", version=version)

    assert "page" in input_of(written, document_url="https://example.com/docs/api.yaml")["properties"]
    assert fate(written, document_url="https://example.com/docs/other.yaml").status is Status.SKIPPED
    assert fate(written).status is Status.SKIPPED


@pytest.mark.parametrize(
    ("own", "ref"),
    [
        ("https://example.com/a/api", "https://example.com/a/api"),
        ("https://example.com/a/api#part", "api"),
        ("/a/api", "/a/api"),
        ("a/api", "api"),
        ("urn:example:api", "urn:example:api"),
    ],
)
def test_a_document_may_refer_to_itself_by_the_name_it_gives_itself(own: str, ref: str) -> None:
    """OpenAPI 3.2: `$self` is what relative references start from; before, it means nothing."""
    written = paged(f"{ref}#/components/parameters/Page", version="3.2.0", **{"$self": own})

    assert "page" in input_of(written)["properties"]
    assert fate({**written, "openapi": "3.1.1"}).status is Status.SKIPPED


@pytest.mark.parametrize("own", [5, {}, "", "http://[x", "#x", "../..", "urn:x"])
def test_a_name_that_is_none_costs_nothing(own: Any) -> None:
    """Ours: a hostile name leaves the references of the document as they are (OAS-3)."""
    dynamic = {} if isinstance(own, str) else {"$dynamicRef": own}
    schema = {"$id": own, "$anchor": own, **dynamic, "allOf": [{"$ref": "#/components/schemas/N"}]}
    written = with_body(schema, version="3.2.0", components={"schemas": {"N": INTEGER}}, **{"$self": own})

    assert fate(written).status is Status.OK
    assert not accepts(input_of(written), {"body": "x"})


def test_names_mean_something_since_3_1_only() -> None:
    """OpenAPI 3.0: schemas have neither `$id` nor anchors."""
    schemas = {"N": {"$anchor": "n", **INTEGER}, "M": {"$id": "https://example.com/n", **INTEGER}}

    for ref in ("#n", "https://example.com/n"):
        old, new = (
            fate(with_body({"$ref": ref}, version=version, components={"schemas": schemas}))
            for version in ("3.0.3", "3.1.0")
        )
        assert (old.status is Status.OK, new.status) == (False, Status.OK)


def test_a_dynamic_reference_is_followed_where_it_has_no_choice() -> None:
    """JSON Schema 2020-12 section 8.2.3.2: which of several it means is known during validation only."""
    tree = {**LEAF, "properties": {"kids": {"type": "array", "items": {"$dynamicRef": "#node"}}, "n": INTEGER}}

    def takes(**schemas: Mapping[str, Any]) -> bool:
        written = with_body({"$ref": "#/components/schemas/Tree"}, components={"schemas": schemas})
        return accepts(input_of(written), {"body": {"kids": [{"n": "x"}]}})

    assert not takes(Tree=tree)
    assert takes(Tree=tree, Other={"$id": "https://example.com/other", **LEAF})


@pytest.mark.parametrize(
    "schema",
    [{"$dynamicRef": "#any"}, {"type": "object", "properties": {"a": {"$dynamicRef": "#any"}}}],
)
def test_a_result_with_an_open_dynamic_reference_has_no_output_schema(schema: dict[str, Any]) -> None:
    """Ours: a part that cannot be read is named, and no result is validated against the rest (OAS-8)."""
    content = {"content": {"application/json": {"schema": schema}}}
    compilation = compile_it(operation({"responses": {"200": {"description": "", **content}}}), output_schemas=True)

    assert "outputSchema" not in definition_of(compilation.operations[0])
    [warning] = compilation.report.warnings
    assert "the dynamic reference '#any' does not have a single anchor; the tool lists no output schema" in warning


def test_a_dynamic_reference_with_a_choice_degrades_its_operation() -> None:
    """Ours: a reference that is not followed is not dropped silently (OAS-3)."""
    strict = {"$id": "https://example.com/strict", "$dynamicAnchor": "item", "enum": ["a"]}
    listed = {
        "$id": "https://example.com/list",
        "$defs": {"any": {"$dynamicAnchor": "item"}},
        "type": "array",
        "items": {"$dynamicRef": "#item"},
    }
    found = fate(with_body({"$ref": "#/components/schemas/L"}, components={"schemas": {"L": listed, "S": strict}}))

    assert found.status is Status.DEGRADED
    assert "'#item' does not have a single anchor; anything is accepted there" in found.reasons[0]


def test_names_in_data_name_nothing() -> None:
    """Ours: the content of an example names nothing."""
    components = {"schemas": {"N": {"example": {"$anchor": "n", "type": "integer"}}}}

    assert fate(with_body({"$ref": "#n"}, components=components)).status is Status.DEGRADED


def test_names_with_odd_characters_are_pointed_to() -> None:
    """RFC 6901 section 6: a pointer in a fragment is percent-encoded."""
    schemas = {"a%b/c~d": {"$anchor": "n", **INTEGER}}

    assert body_of({"$ref": "#n"}, components={"schemas": schemas})["$ref"].startswith("#/$defs/")
    assert fate(document({"/x": {"get": {}}}, components={"schemas": schemas})).status is Status.OK
