"""Examples: constraints that a schema loses by the examples of its own document, listed examples, and bounds."""

import contextlib
import json
from typing import Any

import pytest

from gateway.domain.updates.import_reports import ExampleCounts, Status
from gateway.errors import InvalidDocument
from gateway.openapi.compiler import compile_document
from gateway.openapi.operation.limits import MAX_EXAMPLES
from gateway.openapi.options import ImportOptions
from gateway.openapi.schema.limits import MAX_EXAMPLE_BYTES
from tests.support.openapi import accepts, body_of, compile_it, fate, input_of, operation, with_body, with_parameter

_GRAMMAR = "#/components/schemas/Grammar"


def body(schema: Any, *examples: Any, media_type: str = "application/json", **more: Any) -> dict[str, Any]:
    """A document with one body, its schema, and the examples of its media type."""
    named = {f"e{number}": {"value": example} for number, example in enumerate(examples)}
    content = {media_type: {"schema": schema, "examples": named}}
    return operation({"requestBody": {"required": True, "content": content}}, method="post", **more)


def counts(document: dict[str, Any]) -> ExampleCounts:
    """Counts of the report."""
    found = compile_it(document).report.examples
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("schema", "example", "listed"),
    [
        ({"type": "string", "format": "date-time"}, "2024-01-31", {"type": "string"}),
        ({"type": "string", "pattern": "^a$"}, "b", {"type": "string"}),
        ({"type": "string", "minLength": 3}, "b", {"type": "string"}),
        ({"type": "integer", "maximum": 3}, 4, {"type": "integer"}),
        ({"type": "array", "items": {}, "minItems": 1}, [], {"type": "array", "items": {}}),
        ({"type": "object", "additionalProperties": False}, {"a": 1}, {"type": "object"}),
        ({"type": "object", "properties": {"a": {}}, "required": ["a", "b"]}, {"a": 1}, {"required": ["a"]}),
        ({"type": "integer"}, None, {"type": ["integer", "null"]}),
        ({"type": "integer"}, "4", {"type": "integer", "examples": [4]}),
        ({"type": "string"}, 4, {"type": ["string", "integer"]}),
        ({"type": "integer"}, 1.5, {"type": ["integer", "number"]}),
        ({"type": "object"}, '{"a": 1}', {"type": "object", "examples": [{"a": 1}]}),
        ({"oneOf": [{"type": "null"}, {"type": "string", "format": "uri"}]}, "x", {"examples": ["x"]}),
    ],
)
def test_a_constraint_that_an_example_contradicts_is_relaxed(schema: Any, example: Any, listed: dict[str, Any]) -> None:
    """Ours: a document's own example is evidence of what its API takes (OAS-8)."""
    document = body(schema, example)
    found = input_of(document)

    assert fate(document).status is Status.OK
    assert found["properties"]["body"].items() >= listed.items()
    if "examples" not in listed or "oneOf" in schema:
        assert accepts(found, {"body": example})


def test_a_closed_list_becomes_examples() -> None:
    """Ours: values that are not all values are still what is usual (OAS-8)."""
    listed = body_of({"type": "string", "enum": ["now", "later"], "example": "2030-01-01"})

    assert listed == {"type": "string", "examples": ["2030-01-01", "now", "later"]}


@pytest.mark.parametrize(
    ("schema", "example"),
    [
        ({"type": "object"}, [1]),
        ({"type": "array", "items": {}}, {"a": 1}),
        ({"type": "string"}, {"a": 1}),
        ({"not": {}}, 1),
        ({"type": "object", "properties": {"a": {"type": "object", "required": ["b"]}}}, {"a": {}}),
    ],
)
def test_an_uncovered_example_is_a_note_with_the_place(schema: Any, example: Any) -> None:
    """Ours: an example of another shape is a blemish of the document; the tool loses nothing (OAS-3, OAS-8)."""
    document = with_body({"type": "object", "properties": {"x": {**schema, "example": example}}})
    (note,) = compile_it(document).report.notes

    assert fate(document).status is Status.OK
    assert "schema/properties/x/example does not fit" in note
    assert counts(document).refused == 1


def test_members_missing_in_a_whole_example_become_optional() -> None:
    """Ours: the example of a request is complete, that of one property may be a sketch (OAS-8)."""
    pet: dict[str, Any] = {"type": "object", "properties": {"id": {}, "name": {}}, "required": ["id", "name"]}
    whole = with_body(
        {"$ref": "#/components/schemas/Pet"}, components={"schemas": {"Pet": {**pet, "example": {"id": 1}}}}
    )
    part = with_body({"type": "object", "properties": {"pet": {**pet, "example": {"id": 1}}}})

    assert input_of(whole)["$defs"]["Pet"]["required"] == ["id"]
    assert input_of(part)["properties"]["body"]["properties"]["pet"]["required"] == ["id", "name"]


@pytest.mark.parametrize(
    ("schema", "style", "example", "is_taken"),
    [
        ({"type": "boolean"}, "form", "true", True),
        ({"type": "array", "items": {"type": "string"}}, "form", "a,b", True),
        ({"type": "object"}, "deepObject", "a", False),
    ],
)
def test_the_text_of_a_value_is_taken_where_values_are_sent_as_text(
    schema: Any, style: str, example: Any, is_taken: bool
) -> None:
    """Ours: in a query, `true` and "true" are the same bytes (OAS-8)."""
    document = with_parameter({"name": "v", "in": "query", "style": style, "schema": schema, "example": example})

    assert accepts(input_of(document), {"v": example}) is is_taken


def test_fields_of_a_form_are_text_too() -> None:
    """Ours: a whole form that is an example has its fields as text (OAS-8)."""
    schema = {"type": "object", "properties": {"events": {"type": "array", "items": {"type": "string"}}}}
    example = {"events": "ringing"}

    assert accepts(input_of(body(schema, example, media_type="application/x-www-form-urlencoded")), {"body": example})
    assert not accepts(input_of(body(schema, example)), {"body": example})


def test_examples_that_fit_are_listed_where_they_add_something() -> None:
    """Ours: agents copy examples; those that repeat the schema are left out (OAS-8)."""
    properties: dict[str, Any] = {
        "at": {"type": "string", "example": "2024-01-31T00:00"},
        "size": {"type": "string", "enum": ["s", "m"], "example": "s"},
        "fast": {"type": "boolean", "example": True},
        "page": {"type": "integer", "default": 1, "example": 1},
        "long": {"type": "string", "example": "x" * 300},
        "many": {"type": "integer", "examples": [1, 2, 2, 3, 4, 5]},
    }
    listed = body_of({"type": "object", "properties": properties})["properties"]

    assert {name: schema.get("examples") for name, schema in listed.items()} == {
        "at": ["2024-01-31T00:00"],
        "size": None,
        "fast": None,
        "page": None,
        "long": None,
        "many": [1, 2, 3],
    }


def test_parameters_of_path_and_operation_with_one_index_are_both_checked() -> None:
    """Fixed: the second one had the results of the first, and its examples stayed as they are (OAS-8)."""
    first, second = ({"name": name, "in": "query", "schema": {"type": "integer"}} for name in "ab")
    raw = operation({"parameters": [{**second, "example": "x"}]})
    raw["paths"]["/x"]["parameters"] = [{**first, "example": 1}]
    properties = input_of(raw)["properties"]

    assert properties["a"] == {"type": "integer", "examples": [1]}
    assert properties["b"] == {"type": ["integer", "string"], "examples": ["x"]}
    assert counts(raw) == ExampleCounts(accepted=1, relaxed=1)


def test_examples_behind_references_count_and_a_shared_parameter_counts_once() -> None:
    """OpenAPI: examples may be components (OAS-8)."""
    components = {
        "examples": {"E": {"value": "2024"}, "Loop": {"$ref": "#/components/examples/Loop"}},
        "parameters": {
            "P": {
                "name": "v",
                "in": "query",
                "schema": {"type": "string", "format": "date"},
                "examples": {"e": {"$ref": "#/components/examples/E"}, "l": {"$ref": "#/components/examples/Loop"}},
            }
        },
    }
    paths = {f"/{name}": {"get": {"parameters": [{"$ref": "#/components/parameters/P"}]}} for name in "ab"}
    document = {**operation({}), "paths": paths, "components": components}

    assert counts(document) == ExampleCounts(relaxed=1)
    assert all(b"format" not in made.definition for made in compile_it(document).operations)


@pytest.mark.parametrize("version", ["2.0", "3.0.3", "3.1.0"])
def test_examples_of_every_version_are_read(version: str) -> None:
    """OpenAPI: `x-example` of Swagger 2.0, `example` of 3.0, `examples` of 3.1 (OAS-8)."""
    parameter: dict[str, Any] = {"name": "v", "in": "query"}
    if version == "2.0":
        document: dict[str, Any] = {
            "swagger": "2.0",
            "info": {"title": "T", "version": "1"},
            "host": "h",
            "paths": {"/x": {"get": {"parameters": [{**parameter, "type": "integer", "x-example": 7}]}}},
        }
    else:
        reported = {"example": 7} if version == "3.0.3" else {"examples": [7]}
        document = with_parameter({**parameter, "schema": {"type": "integer", **reported}}, version=version)

    assert input_of(document)["properties"]["v"]["examples"] == [7]


@pytest.mark.parametrize(
    "example", ["x" * (MAX_EXAMPLE_BYTES + 1), [[[[["a"]]]]] * 20_000], ids=["long", "many values"]
)
def test_a_huge_example_is_not_checked(example: Any) -> None:
    """Ours: an example may be huge; the operation stays as it is (OAS-8)."""
    found = compile_it(body({"type": "object"}, example))

    assert found.report.examples == ExampleCounts(unchecked=1)
    assert found.report.count(Status.OK) == 1


@pytest.mark.parametrize("example", [b'"\\ud800"', b"1e999", b"9" * 40, b"[" * 60 + b"]" * 60, b'{"$ref":"#/nowhere"}'])
def test_odd_values_cost_nothing_but_themselves(example: bytes) -> None:
    """Ours: an example may contain every value of JSON (OAS-8)."""
    document = body({"type": "object", "properties": {"a": {"format": "date"}}}, "EXAMPLE")
    raw = json.dumps(document).encode().replace(b'"EXAMPLE"', example)

    with contextlib.suppress(InvalidDocument):  # the reader of JSON takes no such number or character
        assert compile_document(raw, ImportOptions()).report.operations[0].tool is not None


def test_an_example_that_would_double_the_work_at_each_level_is_not_checked() -> None:
    """Ours: visits are counted before a check begins (ISO-2)."""
    node = {"$ref": "#/components/schemas/N"}
    branch = {"type": "object", "properties": {"n": node}}
    schemas = {"N": {"anyOf": [branch, {**branch, "required": ["z"]}]}}
    example: dict[str, Any] = {}
    for _ in range(40):
        example = {"n": example}

    assert counts(body(node, example, components={"schemas": schemas})) == ExampleCounts(unchecked=1)


def test_the_number_of_examples_is_bounded() -> None:
    """Ours: beyond the limit, examples are neither checked nor listed."""
    part = {"type": "string", "maxLength": 3, "examples": ["a"] * 20}
    found = counts(with_body({"type": "object", "properties": {f"p{number}": part for number in range(1_001)}}))

    assert found == ExampleCounts(accepted=MAX_EXAMPLES, unchecked=20)


def test_a_schema_that_its_examples_contradict_everywhere_still_makes_a_tool() -> None:
    """Ours: contradictions cost constraints, not the operation."""
    properties = {f"p{number}": {"type": "integer", "minimum": 9, "enum": [9], "example": "no"} for number in range(50)}
    schema = {"type": "object", "properties": properties, "required": list(properties), "example": {}}
    document = with_body(schema)

    assert fate(document).tool is not None
    assert accepts(input_of(document), {"body": {}})


def test_schemas_that_no_example_reaches_cost_nothing() -> None:
    """Ours: the budget for compiled schemas counts those that an example reaches, not a whole grammar."""
    grammar = {f"rule{number}": {"type": "string", "description": "words " * 20} for number in range(500)}
    document = body({"$ref": "#/components/schemas/Search"}, *({"size": number} for number in range(20)))
    document["paths"] = {f"/search{number}": item for number in range(30) for item in document["paths"].values()}
    document["components"] = {
        "schemas": {
            "Search": {"type": "object", "properties": {"size": {"type": "integer"}, "query": {"$ref": _GRAMMAR}}},
            "Grammar": {"type": "object", "properties": grammar},
        }
    }
    assert counts(document) == ExampleCounts(accepted=600, relaxed=0, refused=0, unchecked=0)


_COLOUR: dict[str, Any] = {"type": "string", "enum": ["red"]}


def with_defaults(shared: dict[str, Any], **properties: Any) -> dict[str, Any]:
    """A document whose body has these properties, and these shared schemas."""
    schema = {"type": "object", "properties": properties}
    return {**body(schema), "components": {"schemas": shared}}


def test_a_default_that_its_reference_refuses_is_dropped() -> None:
    """Ours: an agent that sends a listed default is not refused; the operation keeps all else (OAS-8)."""
    colour, chain = {"$ref": "#/components/schemas/Colour"}, {"$ref": "#/components/schemas/Chain"}
    document = with_defaults(
        {"Colour": _COLOUR, "Chain": {"allOf": [colour], "default": "red"}},
        wrong={**colour, "default": "RED"},
        right={**colour, "default": "red"},
        inside={"allOf": [colour], "default": "green"},
        through={"anyOf": [chain, {"type": "integer"}], "default": "blue"},
        number={"anyOf": [chain, {"type": "integer"}], "default": 7},
    )
    compiled = compile_it(document)
    properties = input_of(document)["properties"]["body"]["properties"]

    assert {name for name, part in properties.items() if "default" in part} == {"right", "number"}
    dropped = [text for text in compiled.report.warnings if "`default`" in text]
    assert [text.split(":")[0].rpartition("/")[2] for text in dropped] == ["wrong", "inside", "through"]
    assert fate(document).status is Status.OK


def test_an_example_that_relaxes_a_reference_keeps_a_default() -> None:
    """Ours: examples are evidence of what the API accepts, so they are checked before defaults (OAS-8)."""
    colour = {**_COLOUR, "examples": ["green"]}
    document = with_defaults({"Colour": colour}, first={"$ref": "#/components/schemas/Colour", "default": "green"})

    assert input_of(document)["properties"]["body"]["properties"]["first"]["default"] == "green"


def test_defaults_beside_references_are_checked_to_a_limit() -> None:
    """Ours: a schema that branches with each level of its default, and a large one, are not checked (ISO-2)."""
    inner = {"type": "object", "properties": {"x": {"$ref": "#/components/schemas/Tree"}}}
    shared = {"Tree": {"allOf": [inner, inner]}, "Large": {**_COLOUR, "description": "x" * 5000}}
    deep: Any = 1
    for _ in range(14):
        deep = {"x": deep}
    tree = {"$ref": "#/components/schemas/Tree"}
    document = with_defaults(
        shared,
        deep={**tree, "default": deep},
        flat={**tree, "default": 1},
        large={"$ref": "#/components/schemas/Large", "default": "blue"},
    )
    properties = input_of(document)["properties"]["body"]["properties"]

    assert {name for name, part in properties.items() if "default" in part} == {"deep", "large"}
