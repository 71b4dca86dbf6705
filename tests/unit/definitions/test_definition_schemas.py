"""Schemas of a tenant's own can be listed, and checked in bounded time."""

from typing import Any

import pytest

from gateway.definitions.field_reader import Faults
from gateway.definitions.json_schema.checks import check_schema
from gateway.definitions.json_schema.recursion_costs import max_checks, multiplies
from gateway.definitions.json_schema.tree import SchemaTree
from gateway.errors import ToolValidationError


def faults_of(schema: dict[str, Any]) -> list[tuple[str, str]]:
    faults = Faults()
    check_schema(schema, "", faults)
    try:
        faults.raise_as(ToolValidationError, "schema")
    except ToolValidationError as error:
        return [(fault.pointer, fault.reason) for fault in error.faults]
    return []


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(depth):
        schema = {"properties": {"a": schema}}
    return schema


def doubling(count: int) -> dict[str, Any]:
    """Each definition applies the next one twice to the same part."""
    definitions: dict[str, Any] = {
        f"d{number}": {"properties": {"x": {"anyOf": [{"$ref": f"#/$defs/d{number + 1}"}] * 2}}}
        for number in range(count)
    }
    return {"$ref": "#/$defs/d0", "$defs": definitions | {f"d{count}": {"type": "integer"}}}


ANYTHING: dict[str, Any] = {}
TREE = {
    "$ref": "#/$defs/node",
    "$defs": {
        "node": {
            "type": "object",
            "properties": {"left": {"$ref": "#/$defs/node"}, "right": {"$ref": "#/$defs/node"}, "value": {}},
        }
    },
}


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object"},
        {"$schema": "https://json-schema.org/draft/2020-12/schema", "prefixItems": [{"type": "string"}]},
        {"$schema": "https://json-schema.org/draft/2020-12/schema#"},
        {
            "$schema": "https://json-schema.org/draft/2019-09/schema",
            "$recursiveAnchor": True,
            "unevaluatedItems": False,
        },
        {"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"a": {"$id": "#a"}}, "$ref": "#a"},
        {
            "$schema": "https://json-schema.org/draft-07/schema",
            "items": [{}, {"type": "string"}],
            "additionalItems": {},
        },
        {"$id": "https://example.com/schema", "$defs": {"a": {}}, "$ref": "#/$defs/a"},
        {"$defs": {"a/b~c d": {}}, "$ref": "#/$defs/a~1b~0c%20d"},
        {"$defs": {"a": {"$dynamicAnchor": "n"}}, "properties": {"x": {"$dynamicRef": "#n"}}},
        {"properties": {"$ref": {"type": "string"}, "pattern": {"type": "string"}, "enum": {"type": "array"}}},
        {"const": {"$ref": "https://example.com"}, "enum": [{"pattern": "(?=a)"}], "default": {"$id": 5}},
        {"dependencies": {"a": ["b"], "c": {"required": ["d"]}}, "dependentSchemas": {"a": {}}},
        {"properties": {"x": False, "y": True}, "contentSchema": {"type": "object"}},
        {"x-unknown": {"$ref": "https://example.com/not-a-schema"}},
        {"pattern": "^[a-z]{1,20}$", "patternProperties": {"^x-": {"type": "string"}}},
        TREE,
        nested(32),
    ],
)
def test_a_checkable_schema_is_accepted(schema: dict[str, Any]) -> None:
    """Ours: three dialects, every keyword, references within (TDF-2)."""
    assert faults_of(schema) == []


@pytest.mark.parametrize(
    ("schema", "pointer", "reason"),
    [
        ({"$schema": "http://json-schema.org/draft-04/schema#"}, "/$schema", "draft-04"),
        ({"$schema": "https://spec.openapis.org/oas/3.1/dialect/base"}, "/$schema", "openapis"),
        ({"$schema": 5}, "/$schema", "not a supported dialect"),
        ({"$defs": {"a": {"$schema": "http://json-schema.org/draft-07/schema"}}}, "/$defs/a/$schema", "differs"),
        ({"$ref": "https://example.com/schema"}, "/$ref", "is external"),
        ({"$ref": "file:///etc/passwd"}, "/$ref", "is external"),
        ({"$ref": "other.json#/a"}, "/$ref", "is external"),
        ({"properties": {"a": {"$ref": 5}}}, "/properties/a/$ref", "is external"),
        ({"$ref": "#/$defs/missing"}, "/$ref", "has no target"),
        ({"$ref": "#missing"}, "/$ref", "has no target"),
        ({"x-hidden": {"a": {}}, "$ref": "#/x-hidden/a"}, "/$ref", "has no target"),
        ({"$dynamicRef": "#missing"}, "/$dynamicRef", "has no target"),
        ({"$defs": {"a": {"$id": "https://example.com/a"}}}, "/$defs/a/$id", "root"),
        ({"$id": "relative"}, "/$id", "absolute"),
        ({"$id": 5}, "/$id", "absolute"),
        ({"pattern": "(?=a)"}, "/pattern", "linear"),
        ({"pattern": "(a)\\1"}, "/pattern", "linear"),
        ({"pattern": "a" * 513}, "/pattern", "linear"),
        ({"pattern": "("}, "/pattern", "linear"),
        ({"patternProperties": {"(?!x)": {}}}, "/patternProperties/(?!x)", "linear"),
        ({"properties": {f"p{n}": {"pattern": f"^{n}$"} for n in range(201)}}, "/properties/p200/pattern", "200"),
        ({"enum": list(range(2001))}, "/enum", "2000"),
        ({"type": "objekt"}, "/type", "valid JSON Schema"),
        ({"properties": {"a": {"minimum": "x"}}}, "/properties/a/minimum", "valid JSON Schema"),
        ({"required": "a"}, "/required", "valid JSON Schema"),
        ({"properties": {"a": 5}}, "/properties/a", "valid JSON Schema"),
        ({"allOf": [{"$ref": "#"}]}, "", "itself"),
        ({"$ref": "#"}, "", "itself"),
        ({"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}]}, "b": {"not": {"$ref": "#/$defs/a"}}}}, "/$defs", "itself"),
        (doubling(12), "", "one part"),
        ({"properties": {"a": {"anyOf": [ANYTHING] * 1_001}}}, "", "one part"),
        ({"description": "x" * 300_000}, "", "bytes"),
        ({"anyOf": [ANYTHING] * 5_001}, "", "5000"),
        (nested(65), "/properties", "deep"),
    ],
)
def test_an_uncheckable_schema_is_refused_at_its_place(schema: dict[str, Any], pointer: str, reason: str) -> None:
    """Ours: dialects by name, nothing fetched, linear patterns, bounded work (TDF-2, TEN-5)."""
    found = faults_of(schema)

    assert any(place.startswith(pointer) and reason in reported for place, reported in found), found


def test_a_huge_doubling_is_counted_without_being_expanded() -> None:
    """Ours: 2^64 ways are refused as fast as two."""
    assert max_checks(SchemaTree(doubling(64))) > 1_000


def test_recursion_that_stays_linear_is_not_charged() -> None:
    """Ours: trees, linked lists and mutual recursion are everyday schemas."""
    tree = SchemaTree(TREE)

    assert max_checks(tree) < 10
    assert not multiplies(tree)


def test_definitions_that_lead_to_each_other_in_two_ways_are_noticed() -> None:
    """Ours: such a schema multiplies the work with each level of a value."""
    definitions = {
        "a": {"properties": {"x": {"anyOf": [{"$ref": "#/$defs/b"}, {"$ref": "#/$defs/b"}]}}},
        "b": {"properties": {"x": {"$ref": "#/$defs/a"}}},
    }

    assert multiplies(SchemaTree({"$ref": "#/$defs/a", "$defs": definitions}))
