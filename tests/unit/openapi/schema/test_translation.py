"""Schemas of documents as JSON Schema 2020-12: translated, tidied, never stricter than the document."""

from typing import Any, cast

import pytest

from gateway.domain.updates.import_reports import Status
from tests.support.openapi import accepts, body_of, compile_it, document, fate, input_of, with_body


def warnings_of(schema: object, **more: Any) -> str:
    return "\n".join(compile_it(with_body(schema, **more)).report.warnings)


def components(**named: object) -> dict[str, Any]:
    return {"components": {"schemas": named}}


@pytest.mark.parametrize(
    ("schema", "listed"),
    [
        ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
        (
            {"type": "string", "enum": ["a"], "nullable": True},
            {"type": ["string", "null"], "enum": ["a", None]},
        ),
        ({"type": "integer", "minimum": 1, "exclusiveMinimum": True}, {"type": "integer", "exclusiveMinimum": 1}),
        ({"type": "integer", "maximum": 9, "exclusiveMaximum": False}, {"type": "integer", "maximum": 9}),
        ({"type": "integer", "exclusiveMaximum": 9}, {"type": "integer", "exclusiveMaximum": 9}),
        ({"type": "array"}, {"type": "array", "items": {}}),
        ({"type": "file"}, {"type": "string"}),
        ({"type": "string", "xml": {}, "externalDocs": {}, "x-a": 1, "$id": "u"}, {"type": "string"}),
        ({"type": "string", "discriminator": {"propertyName": "t"}}, {"type": "string"}),
        ({"type": "string", "deprecated": True, "writeOnly": True},) * 2,
        ({"type": ["string", "null"], "const": "a"},) * 2,
        ({"type": "array", "prefixItems": [{"type": "string"}], "items": False},) * 2,
        (True, True),
    ],
)
def test_a_schema_is_translated(schema: object, listed: object) -> None:
    """OpenAPI 3.0 and 3.1: its own keywords become JSON Schema or are removed, all others stay."""
    assert body_of(schema) == listed


@pytest.mark.parametrize(
    ("named", "types"),
    [
        *[(name, "number") for name in ("float", "double", "Number")],
        *[(name, "integer") for name in ("int", "int32", "int64", "long", "Integer")],
        ("bool", "boolean"),
        *[(name, "string") for name in ("str", "date-time", "uuid", "STRING")],
        ("any", None),
        (["float", "null"], ["number", "null"]),
        (["int", "any"], None),
        (["int", "int64"], "integer"),
    ],
)
def test_a_type_with_another_name_is_read_with_a_note(named: object, types: object) -> None:
    """Ours: names of formats and of other languages have one reading, so that no type is lost (OAS-3)."""
    schema = {"type": "object", "properties": {"a": {"type": named}}}
    made = compile_it(with_body(schema))
    written = named if isinstance(named, str) else str(cast("list[object]", named)[0])

    assert body_of(schema)["properties"]["a"] == ({} if types is None else {"type": types})
    assert any(f"/properties/a: type '{written}' is read as" in note for note in made.report.notes)
    assert not made.report.warnings


@pytest.mark.parametrize(
    ("schema", "listed", "warning"),
    [
        ({"type": "integer", "default": "10"}, {"type": "integer"}, "`default`"),
        ({"type": "string", "enum": ["a"], "default": "b"}, {"type": "string", "enum": ["a"]}, "`default`"),
        ({"type": "string", "format": "date", "default": ""}, {"type": "string", "format": "date"}, "`default`"),
        ({"type": "integer", "minimum": 1, "default": 0}, {"type": "integer", "minimum": 1}, "`default`"),
        (
            {"anyOf": [{"type": "string", "maxLength": 1}, {"type": "null"}], "default": "ab"},
            {"anyOf": [{"type": "string", "maxLength": 1}, {"type": "null"}]},
            "`default`",
        ),
        ({"type": "object", "required": ["a"], "default": {}}, {"type": "object", "required": ["a"]}, "`default`"),
        ({"type": "string", "enum": ["a", 1, None]}, {"type": "string", "enum": ["a"]}, "another type"),
        ({"type": "string", "enum": []}, {"type": "string"}, "`enum`"),
        ({"type": "boolean", "enum": [0, 1]}, {"type": "boolean"}, "`enum`"),
        ({"type": "colour"}, {}, "`type`"),
        ({"type": ["string", 5]}, {}, "`type`"),
        ({"type": ["string", "point"]}, {}, "`type`"),
        ({"type": "string", "pattern": "^(?!x)"}, {"type": "string"}, "`pattern`"),
        ({"type": "string", "pattern": "a" * 600}, {"type": "string"}, "`pattern`"),
        ({"type": "string", "minLength": -1}, {"type": "string"}, "`minLength`"),
        ({"type": "string", "maxLength": "10"}, {"type": "string"}, "`maxLength`"),
        ({"type": "number", "multipleOf": 0}, {"type": "number"}, "`multipleOf`"),
        ({"type": "object", "required": True}, {"type": "object"}, "`required`"),
        ({"type": "object", "properties": {"a": "text"}}, {"type": "object", "properties": {"a": {}}}, "object"),
        ({"allOf": []}, {}, "`allOf`"),
        ({"type": "integer", "exclusiveMinimum": True}, {"type": "integer"}, "`exclusiveMinimum`"),
        ([], {}, "object"),
    ],
)
def test_a_contradiction_is_dropped_with_a_warning(schema: object, listed: object, warning: str) -> None:
    """Ours: a wrong part of a schema costs that part, and the report names it (OAS-4)."""
    assert body_of(schema) == listed
    assert warning in warnings_of(schema)


def test_a_warning_has_a_pointer() -> None:
    """Ours: a warning names the place in the document."""
    schema = {"type": "object", "properties": {"a/b": {"type": "string", "default": 1}}}

    assert "/paths/~1x/post/requestBody/properties/a~1b:" in warnings_of(schema)


def test_read_only_properties_are_neither_offered_nor_required() -> None:
    """OpenAPI: a readOnly property is not sent in a request, even where a merged part requires it."""
    parts = components(
        Thing={"properties": {"id": {"type": "string", "readOnly": True}, "name": {}}, "required": ["id", "name"]},
        Stamp={"type": "string", "readOnly": True},
    )
    schema = {
        "allOf": [{"$ref": "#/components/schemas/Thing"}, {"required": ["id", "at", "name"]}],
        "properties": {"at": {"$ref": "#/components/schemas/Stamp"}},
        "required": ["id", "at"],
    }

    listed = input_of(with_body(schema, **parts))

    assert listed["properties"]["body"] == {
        "allOf": [{"$ref": "#/$defs/Thing"}, {"required": ["name"]}],
        "properties": {},
    }
    assert listed["$defs"]["Thing"] == {"properties": {"name": {}}, "required": ["name"]}


def test_only_used_schemas_are_listed_and_cycles_stay_references() -> None:
    """Ours: self-contained, no larger than needed (OAS-4)."""
    parts = components(
        A={"type": "object", "properties": {"b": {"$ref": "#/components/schemas/B"}}},
        B={"type": "object", "properties": {"a": {"$ref": "#/components/schemas/A"}}},
        C={"type": "string"},
    )
    schema = input_of(with_body({"$ref": "#/components/schemas/A"}, **parts))

    assert set(schema["$defs"]) == {"A", "B"}
    assert accepts(schema, {"body": {"b": {"a": {"b": {}}}}})
    assert not accepts(schema, {"body": {"b": {"a": {"b": 1}}}})


def test_definitions_have_plain_and_unique_names() -> None:
    """Ours: two places with one last token are two definitions; odd characters become underscores."""
    parts: dict[str, Any] = {
        "components": {
            "schemas": {"Foo.Bar[Baz]": {"type": "string"}, "L": {"$defs": {"I": {"type": "integer"}}}},
            "x-other": {"I": {"type": "boolean"}},
        }
    }
    schema = {
        "type": "array",
        "prefixItems": [
            {"$ref": "#/components/schemas/Foo.Bar[Baz]"},
            {"$ref": "#/components/schemas/Foo.Bar%5BBaz%5D"},
            {"$ref": "#/components/schemas/L/$defs/I"},
            {"$ref": "#/components/x-other/I"},
        ],
    }

    assert set(input_of(with_body(schema, **parts))["$defs"]) == {"Foo.Bar_Baz_", "I", "I_2"}


def test_siblings_of_a_reference_count_in_3_1_and_only_describe_in_3_0() -> None:
    """OpenAPI: 3.1 follows JSON Schema, 3.0 ignores members beside a reference."""
    schema = {"$ref": "#/components/schemas/A", "minLength": 3, "description": "d"}
    parts = components(A={"type": "string"})

    assert body_of(schema, **parts) == {"$ref": "#/$defs/A", "minLength": 3, "description": "d"}
    assert body_of(schema, version="3.0.3", **parts) == {"$ref": "#/$defs/A", "description": "d"}


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/components/schemas/A", "nullable": True},
        {"allOf": [{"$ref": "#/components/schemas/A"}], "nullable": True},
        {"oneOf": [{"$ref": "#/components/schemas/A"}, {"type": "integer"}], "nullable": True},
        {"const": "abc", "nullable": True},
    ],
)
def test_null_is_permitted_beside_a_composition(schema: object) -> None:
    """OpenAPI 3.0: `nullable` beside a reference or composition allows null."""
    listed = input_of(with_body(schema, version="3.0.3", **components(A={"type": "string"})))

    assert accepts(listed, {"body": None})
    assert accepts(listed, {"body": "abc"})
    assert not accepts(listed, {"body": {}})


def test_a_reference_in_place_of_properties_is_understood() -> None:
    """Ours: a real document (Meilisearch) writes its properties as one reference."""
    parts = components(A={"properties": {"a": {"type": "string"}}}, B={"b": {"type": "integer"}})

    for name, listed in (("A", {"a": {"type": "string"}}), ("B", {"b": {"type": "integer"}})):
        schema = {"type": "object", "properties": {"$ref": f"#/components/schemas/{name}"}}
        assert body_of(schema, **parts) == {"type": "object", "properties": listed}


def test_a_property_may_be_called_like_a_keyword() -> None:
    """Ours: names of properties are no keywords, whatever they are."""
    schema = {
        "type": "object",
        "properties": {"$ref": {"type": "string"}, "oneOf": {"type": "any"}, "example": {"type": "string"}},
    }

    assert set(body_of(schema)["properties"]) == {"$ref", "oneOf", "example"}


def test_a_missing_schema_accepts_anything_and_degrades() -> None:
    """Ours: a dangling reference costs its place, not the operation."""
    raw = with_body({"type": "object", "properties": {"a": {"$ref": "#/components/schemas/Gone"}}})

    assert fate(raw).status is Status.DEGRADED
    assert "'#/components/schemas/Gone' does not exist" in fate(raw).reasons[0]
    assert accepts(input_of(raw), {"body": {"a": [1]}})


@pytest.mark.parametrize("ref", ["https://example.com/x.json", "other.yaml#/A", "file:///etc/passwd"])
def test_a_schema_outside_the_document_skips_the_operation(ref: str) -> None:
    """Ours: external references are never fetched (OAS-7)."""
    raw = with_body({"$ref": "#/components/schemas/A"}, **components(A={"items": {"$ref": ref}}))
    report = fate(raw)

    assert report.status is Status.SKIPPED
    assert ref in report.reasons[0]


def test_an_answer_outside_the_document_is_only_a_warning() -> None:
    """Ours: the response of an operation does not decide if it can be called."""
    raw = document({"/x": {"get": {"responses": {"200": {"$ref": "https://example.com/r.json"}}}}})

    assert fate(raw).status is Status.OK
    assert "https://example.com/r.json" in compile_it(raw).report.warnings[0]


def test_a_loosened_branch_does_not_make_one_of_stricter() -> None:
    """Ours: where a branch accepts more than it should, `oneOf` may not refuse what fits two."""
    schema: dict[str, Any] = {
        "oneOf": [{"type": "string", "pattern": "^(?!a)"}, {"type": "string", "enum": ["abc"]}],
        "not": {},
    }
    listed = input_of(with_body(schema))

    assert accepts(listed, {"body": "abc"})
    assert set(listed["properties"]["body"]) == {"anyOf"}


def test_a_dropped_pattern_property_does_not_close_the_object() -> None:
    """Ours: names that only a dropped pattern allowed are still accepted."""
    schema: dict[str, Any] = {
        "patternProperties": {"^(?!x)": {}, "^y": {"type": "string"}},
        "additionalProperties": False,
    }
    listed = input_of(with_body(schema))

    assert accepts(listed, {"body": {"anything": 1}})
    assert not accepts(listed, {"body": {"y": 1}})


def test_descriptions_hide_nothing() -> None:
    """Ours: control, zero-width and bidirectional characters are gone from texts that a model reads."""
    schema = {"description": "a\u200bb\u202ec\x07d\U000e0041\r\ne", "title": "\ufefft"}

    assert body_of(schema) == {"description": "abcd\ne", "title": "t"}


def test_a_circle_of_alternatives_compiles() -> None:
    """Ours: the common mistake that a subtype refers to the type that lists it costs nothing."""
    parts = components(
        Pet={"oneOf": [{"$ref": "#/components/schemas/Cat"}], "discriminator": {"propertyName": "t"}},
        Cat={"allOf": [{"$ref": "#/components/schemas/Pet"}, {"properties": {"t": {"type": "string"}}}]},
    )

    assert fate(with_body({"$ref": "#/components/schemas/Pet"}, **parts)).status is Status.OK


def test_alternatives_that_double_are_cut() -> None:
    """Ours: 2^30 schemas for one value are never listed, and cost no time."""
    named: dict[str, object] = {f"S{n}": {"anyOf": [{"$ref": f"#/components/schemas/S{n + 1}"}] * 2} for n in range(30)}
    raw = with_body({"$ref": "#/components/schemas/S0"}, **components(S30={"type": "string"}, **named))
    report = fate(raw)

    assert report.status is Status.DEGRADED
    assert any("apply to one value" in reason for reason in report.reasons)


def test_read_only_parts_that_double_cost_no_time() -> None:
    """Ours: looking for read-only names visits each schema once."""
    named: dict[str, object] = {f"S{n}": {"allOf": [{"$ref": f"#/components/schemas/S{n + 1}"}] * 5} for n in range(60)}

    assert fate(with_body({"$ref": "#/components/schemas/S0"}, **components(**named))).tool is not None


def test_shared_schemas_beyond_the_limit_lose_descriptions_first() -> None:
    """Ours: 256 KiB a tool; descriptions go before constraints."""
    named: dict[str, object] = {
        f"S{n}": {"type": "object", "description": "d" * 1000, "properties": {f"p{n}": {"type": "string"}}}
        for n in range(400)
    }
    every = {"anyOf": [{"$ref": f"#/components/schemas/S{n}"} for n in range(400)]}
    raw = with_body(every, **components(**named))

    assert fate(raw).status is Status.DEGRADED
    assert "descriptions are dropped" in fate(raw).reasons[0]
    assert input_of(raw)["$defs"]["S7"] == {"type": "object", "properties": {"p7": {"type": "string"}}}


def test_shared_schemas_far_beyond_the_limit_accept_anything() -> None:
    """Ours: the nearest stay, the farthest accept anything, and the report has their number."""
    wide = {f"property_{n}": {"type": "string"} for n in range(1_000)}
    named: dict[str, object] = {
        f"S{n}": {"properties": {**wide, "next": {"$ref": f"#/components/schemas/S{n + 1}"}}} for n in range(50)
    }
    raw = with_body({"$ref": "#/components/schemas/S0"}, **components(S50={}, **named))
    schema = input_of(raw)

    assert any("anything is accepted" in reason for reason in fate(raw).reasons)
    assert schema["$defs"]["S0"]["properties"]["property_1"] == {"type": "string"}
    assert list(schema["$defs"].values())[-1] == {}


def test_one_argument_beyond_the_limit_accepts_anything() -> None:
    """Ours: a body that alone is too large is not checked, but still sent."""
    raw = with_body({"properties": {f"property_{n}": {"type": "string"} for n in range(20_000)}})

    assert input_of(raw)["properties"] == {"body": {}}
    assert "argument 'body' was replaced" in fate(raw).reasons[0]


@pytest.mark.parametrize("keyword", ["not", "items", "additionalProperties"])
def test_deep_schemas_are_cut_not_crashed_on(keyword: str) -> None:
    """Ours: nesting that no serialiser or validator takes is loosened."""
    schema: dict[str, object] = {"type": "string", "nullable": True}
    for _ in range(80):
        schema = {keyword: schema, "nullable": True, "const": 1}

    assert fate(with_body(schema)).tool is not None


def test_a_chain_of_references_without_end_is_a_reason() -> None:
    """Ours: a parameter that refers to itself skips its operation."""
    parts: dict[str, Any] = {"components": {"parameters": {"P": {"$ref": "#/components/parameters/P"}}}}
    raw = document({"/x": {"get": {"parameters": [{"$ref": "#/components/parameters/P"}]}}}, **parts)

    assert fate(raw).status is Status.SKIPPED
    assert "is a circular reference" in fate(raw).reasons[0]


def test_a_schema_that_is_its_own_reference_is_listed_as_it_is() -> None:
    """Ours: it means nothing, and checks nothing."""
    parts = components(A={"$ref": "#/components/schemas/A"})

    assert fate(with_body({"$ref": "#/components/schemas/A"}, **parts)).tool is not None


def test_patterns_are_bounded_in_memory_together() -> None:
    """Ours: the budget of one pattern is not that of ten thousand."""
    costly = {f"p{n}": {"type": "string", "pattern": f"^\\w{{1,2{n % 100:02}}}$"} for n in range(200)}
    raw = with_body({"properties": costly, "patternProperties": {"^x": {}}, "additionalProperties": False})
    listed = input_of(raw)["properties"]["body"]

    assert "patterns" in fate(raw).reasons[0]
    assert listed == {"properties": {name: {"type": "string"} for name in costly}}


def test_a_pattern_that_takes_megabytes_is_dropped() -> None:
    """Ours: one pattern takes no more than a mebibyte."""
    assert body_of({"type": "string", "pattern": "^(a{1,500}){1,100}$"}) == {"type": "string"}
