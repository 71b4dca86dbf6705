"""Merged, closed and discriminated schemas: what authors mean, and never less than the document allows."""

from typing import Any

import pytest

from tests.support.openapi import accepts, definition_of, input_of, only, operation, with_body

CLOSED: dict[str, Any] = {"type": "object", "additionalProperties": False}
PETS: dict[str, Any] = {
    "Pet": {
        "type": "object",
        "required": ["kind"],
        "properties": {"kind": {"type": "string"}, "friend": {"$ref": "#/components/schemas/Pet"}},
        "discriminator": {"propertyName": "kind"},
    },
    "Dog": {"allOf": [{"$ref": "#/components/schemas/Pet"}, {"properties": {"bark": {"type": "string"}}}]},
    "Puppy": {"allOf": [{"$ref": "#/components/schemas/Dog"}, {"properties": {"age": {"type": "integer"}}}]},
}


def listed(schema: Any, components: dict[str, Any]) -> dict[str, Any]:
    """The input schema for a body of this schema."""
    return input_of(with_body(schema, components={"schemas": components}))


def test_closed_parts_of_a_whole_let_each_other_in() -> None:
    """Ours: `additionalProperties: false` in the parts of an `allOf` is meant for the whole."""
    components = {
        "A": {**CLOSED, "properties": {"a": {"type": "integer"}}},
        "B": {**CLOSED, "properties": {"b": {"type": "integer"}}},
    }
    schema = listed({"allOf": [{"$ref": "#/components/schemas/A"}, {"$ref": "#/components/schemas/B"}]}, components)

    assert accepts(schema, {"body": {"a": 1, "b": 2}})
    assert not accepts(schema, {"body": {"a": "x", "b": 2}})


def test_a_closed_whole_knows_the_properties_of_its_parts() -> None:
    """Ours: beside an `allOf` it closes what the parts leave open."""
    schema = listed({**CLOSED, "properties": {"c": {}}, "allOf": [{"properties": {"a": {"type": "integer"}}}]}, {})

    assert accepts(schema, {"body": {"a": 1, "c": 2}})
    assert not accepts(schema, {"body": {"a": 1, "other": 2}})


def test_a_part_that_is_closed_for_itself_stays_closed() -> None:
    """OpenAPI: nothing is loosened without need."""
    schema = listed({"allOf": [{**CLOSED, "properties": {"a": {}}}, {"required": ["a"]}]}, {})

    assert not accepts(schema, {"body": {"a": 1, "b": 2}})


@pytest.mark.parametrize("is_closed", [True, False])
def test_a_discriminator_without_choices_covers_its_subtypes(is_closed: bool) -> None:
    """OpenAPI: a schema that is merged from one with a discriminator may replace it, at any depth."""
    pet = {**PETS["Pet"], "additionalProperties": False} if is_closed else PETS["Pet"]
    schema = listed({"$ref": "#/components/schemas/Pet"}, {**PETS, "Pet": pet})

    assert set(schema["$defs"]) == {"Pet", "Dog", "Puppy"}
    assert accepts(schema, {"body": {"kind": "Dog", "bark": "x", "friend": {"kind": "Puppy", "age": 1}}})
    assert not accepts(schema, {"body": {"bark": "x"}})
    if is_closed:
        assert not accepts(schema, {"body": {"kind": "Dog", "bark": 1}})


def test_a_discriminator_with_choices_has_no_implied_subtypes() -> None:
    """OpenAPI: `oneOf` itself lists the permitted types."""
    choice = {"oneOf": [{"$ref": "#/components/schemas/Dog"}], "discriminator": {"propertyName": "kind"}}
    plain = {key: value for key, value in PETS["Pet"].items() if key != "discriminator"}
    schema = listed(choice, {**PETS, "Pet": plain})

    dog = {"$ref": "#/$defs/Dog", "properties": {"kind": {"const": "Dog"}}, "required": ["kind"]}
    assert schema["properties"]["body"] == {"oneOf": [dog]}


def test_families_in_circles_are_read_to_an_end() -> None:
    """Ours: schemas that are merged from each other cost no endless walk."""
    circle = {
        "A": {"allOf": [{"$ref": "#/components/schemas/B"}], "discriminator": {"propertyName": "k"}},
        "B": {"allOf": [{"$ref": "#/components/schemas/A"}, {"$ref": "#/components/schemas/missing"}]},
    }
    schema = listed({"$ref": "#/components/schemas/A"}, circle)

    assert "$defs" in schema


def output(schema: Any, *, status: str = "200", **more: Any) -> Any:
    """The output schema of a tool whose one answer has this schema."""
    node = {"responses": {status: {"description": "", "content": {"application/json": {"schema": schema}}}}}
    return definition_of(only(operation(node, **more), output_schemas=True)).get("outputSchema")


def test_output_schemas_have_the_members_of_answers() -> None:
    """Ours: opt-in; write-only properties are left out, read-only ones stay (TDF-5)."""
    schema = {
        "type": "object",
        "properties": {"id": {"type": "integer", "readOnly": True}, "pw": {"type": "string", "writeOnly": True}},
        "required": ["id", "pw"],
    }

    assert output(schema) == {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}
    assert output(schema, status="default") is not None
    assert "outputSchema" not in definition_of(only(operation({"responses": {}})))


@pytest.mark.parametrize(
    "schema", [{"type": "array"}, {"type": "string"}, {}, {"type": "object", "nullable": True}, {"$ref": "other.yaml"}]
)
def test_answers_that_are_no_objects_have_no_output_schema(schema: Any) -> None:
    """MCP: structured content is an object in every era that clients speak."""
    assert output(schema) is None


def test_an_answer_without_a_body_leaves_nothing_to_rely_on() -> None:
    """Ours: a declared 204 beside a 200 means that results may be empty."""
    node = {
        "responses": {
            "200": {"description": "", "content": {"application/json": {"schema": {"type": "object"}}}},
            "204": {"description": ""},
        }
    }

    assert "outputSchema" not in definition_of(only(operation(node), output_schemas=True))


def test_media_types_may_be_shared() -> None:
    """OpenAPI 3.2: a media type may be a reference."""
    shared = {"mediaTypes": {"J": {"schema": {"type": "object", "properties": {"a": {"type": "integer"}}}}}}
    content = {"content": {"application/json": {"$ref": "#/components/mediaTypes/J"}}}
    raw = operation(
        {"requestBody": content, "parameters": [{"name": "p", "in": "query", **content}]},
        method="post",
        version="3.2.0",
        components=shared,
    )

    properties = input_of(raw)["properties"]
    assert properties["body"]["properties"] == {"a": {"type": "integer"}}
    assert properties["p"]["properties"] == {"a": {"type": "integer"}}
