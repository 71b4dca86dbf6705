"""Listed schemas: changes for clients, and that they refuse nothing valid."""

from collections.abc import Callable
from random import Random
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.listed.schema import listed_schema

_DIALECTS = {
    "2020-12": "https://json-schema.org/draft/2020-12/schema",
    "2019-09": "https://json-schema.org/draft/2019-09/schema",
    "draft-07": "http://json-schema.org/draft-07/schema#",
}
_OBJECT: dict[str, Any] = {"type": "object", "properties": {}}


def _inside(schema: object) -> dict[str, Any]:
    """The listed form of a schema that an argument has."""
    found: dict[str, Any] = listed_schema({**_OBJECT, "properties": {"a": schema}})["properties"]["a"]
    return found


@pytest.mark.parametrize(
    ("stored", "listed"),
    [
        ({"type": "array"}, {"type": "array", "items": {}}),
        ({"type": ["array", "null"]}, {"type": ["array", "null"], "items": {}}),
        ({"type": "array", "items": True}, {"type": "array", "items": {}}),
        (
            {"type": "array", "items": [{"type": "string"}, False], "additionalItems": {"type": "integer"}},
            {"type": "array", "prefixItems": [{"type": "string"}, {}], "items": {"type": "integer"}},
        ),
        ({"type": "object", "additionalProperties": False}, {"type": "object"}),
        ({"additionalProperties": {"type": "array"}}, {"additionalProperties": {"type": "array", "items": {}}}),
        ({"properties": {"x": True, "y": False}}, {"properties": {"x": {}}}),
        ({"required": ["x"]}, {"required": ["x"], "properties": {"x": {}}}),
        ({"type": "string", "required": ["x"], "properties": {"x": {}}}, {"type": "string"}),
        ({"oneOf": [{"const": 1}, {"const": 2}]}, {"anyOf": [{"const": 1}, {"const": 2}]}),
        ({"pattern": "^(?!x)"}, {}),
        ({"pattern": r"(a)\1"}, {}),
        ({"pattern": r"\p{L}+"}, {}),
        ({"pattern": "^(?:a|b)$"}, {"pattern": "^(?:a|b)$"}),
        ({"patternProperties": {"(?=x)": {}}, "additionalProperties": {}}, {}),
        ({"not": {"$ref": "#"}, "if": {"type": "null"}, "then": {}}, {"if": {"type": "null"}, "then": {}}),
        ({"dependencies": {"x": ["y"], "z": {}}}, {"dependentRequired": {"x": ["y"]}, "dependentSchemas": {"z": {}}}),
        ({"examples": [{"$ref": "http://x"}, 1], "default": {"b": [{"$ref": 1}]}}, {"examples": [1]}),
        ({"enum": [{"$ref": "x"}]}, {}),
        (
            {"x-mcp-header": "Region", "default": None, "odd": [1]},
            {"x-mcp-header": "Region", "default": None, "odd": [1]},
        ),
    ],
)
def test_each_limit_of_a_client_has_an_accepted_form(stored: dict[str, Any], listed: dict[str, Any]) -> None:
    """Ours: each limit of the table has a form that its client takes (CLN-1)."""
    assert _inside(stored) == listed


def test_references_lead_below_defs_of_the_root() -> None:
    """Ours: names of targets, anchors, places inside the schema and the schema itself (CLN-1)."""
    schema = {
        "$schema": _DIALECTS["draft-07"],
        "$id": "https://example.com/x",
        "type": "object",
        "properties": {
            "a": {"$ref": "#/definitions/A", "maxLength": 1},
            "b": {"$ref": "#/properties/a"},
            "c": {"$ref": "#mark"},
            "d": {"$ref": "#"},
            "e": {"$ref": "#/nowhere"},
        },
        "definitions": {"A": {"type": "array"}, "B": {"$id": "#mark", "type": "string"}, "unused": {}},
    }

    listed = listed_schema(schema)

    assert set(listed) == {"type", "properties", "$defs"}
    assert listed["properties"] == {
        "a": {"$ref": "#/$defs/A"},
        "b": {"$ref": "#/$defs/a"},
        "c": {"$ref": "#/$defs/B"},
        "d": {"$ref": "#/$defs/root"},
        "e": {},
    }
    assert listed["$defs"]["A"] == {"type": "array", "items": {}}
    assert listed["$defs"]["root"]["properties"]["d"] == {"$ref": "#/$defs/root"}


def test_the_root_has_all_properties_of_its_alternatives() -> None:
    """Ours: Claude and OpenAI refuse a request with a tool that has alternatives at the root (CLN-1)."""
    schema = {
        "type": "object",
        "properties": {"kind": {"type": "string"}},
        "allOf": [{"$ref": "#/$defs/base"}],
        "oneOf": [
            {"properties": {"kind": {"const": "a"}, "x": {"type": "string"}}, "required": ["kind", "x"]},
            {"properties": {"x": {"type": "integer"}, "y": {}}, "required": ["kind", "y"]},
        ],
        "if": {"required": ["y"]},
        "then": {"properties": {"z": {"type": "null"}}},
        "$defs": {"base": {"properties": {"id": {"type": "integer"}}, "required": ["id"]}},
    }

    assert listed_schema(schema) == {
        "type": "object",
        "properties": {
            "kind": {"type": "string"},
            "id": {"type": "integer"},
            "z": {"type": "null"},
            "x": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
            "y": {},
        },
        "required": ["id", "kind"],
    }


def test_the_alternatives_of_a_root_are_read_for_a_bounded_number_of_times() -> None:
    """Ours: references that multiply with each level cost nothing (TEN-5)."""
    branches: list[object] = [{"properties": {f"p{number}": {}}} for number in range(600)]

    assert len(listed_schema({**_OBJECT, "anyOf": branches})["properties"]) < 600


_TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")
_SCHEMA_KEYWORDS = ("additionalProperties", "propertyNames", "items", "contains", "not", "if", "then", "else")


class _Maker:
    """Makes schemas and values at random; small ones, so that many values fit."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self.dialect = self._random.choice(sorted(_DIALECTS))

    def value(self, depth: int = 2) -> Any:
        """A JSON value."""
        kinds: list[Callable[[], Any]] = [
            lambda: None,
            lambda: self._random.random() < 0.5,
            lambda: self._random.randint(-2, 3),
            lambda: self._random.choice(["", "a", "ab", "1"]),
        ]
        if depth:
            kinds += [lambda: [self.value(depth - 1) for _ in range(self._random.randint(0, 3))]]
            kinds += [lambda: {name: self.value(depth - 1) for name in self._names("abc")}] * 2
        return self._random.choice(kinds)()

    def schema(self, depth: int = 3) -> Any:
        """A schema of the dialect."""
        if not depth or self._random.random() < 0.1:
            return self._random.choice([True, True, {}, {"type": self._random.choice(_TYPES)}, False])
        keywords = self._random.sample(self._keywords(depth - 1), self._random.randint(1, 4))
        return {keyword: make() for keyword, make in keywords}

    def _keywords(self, depth: int) -> list[tuple[str, Callable[[], Any]]]:
        def one() -> Any:
            return self.schema(depth)

        def some() -> list[Any]:
            return [one() for _ in range(self._random.randint(1, 3))]

        def named() -> dict[str, Any]:
            return {name: one() for name in self._names("abc")}

        def by_pattern() -> dict[str, Any]:
            return {self._random.choice(["^a", "b$", "[c]"]): one()}

        refs = ["#", "#/$defs/a", "#/definitions/b", "#/properties/a", "#mark"]
        made: list[tuple[str, Callable[[], Any]]] = [
            ("type", lambda: self._random.choice(_TYPES)),
            ("type", lambda: self._random.sample(_TYPES, 3)),
            ("properties", named),
            ("required", lambda: self._names("abcd")),
            ("patternProperties", by_pattern),
            ("enum", lambda: [self.value(1) for _ in range(3)]),
            ("const", lambda: self.value(1)),
            ("pattern", lambda: self._random.choice(["^a", "b$"])),
            ("$ref", lambda: self._random.choice(refs)),
            *((keyword, one) for keyword in _SCHEMA_KEYWORDS),
            *((keyword, some) for keyword in ("allOf", "anyOf", "oneOf")),
        ]
        if self.dialect == "draft-07":
            made.append(("dependencies", lambda: {"a": ["c"], "b": one()}))
        else:
            made += [("dependentSchemas", named), ("unevaluatedProperties", one)]
        made += [("prefixItems", some)] if self.dialect == "2020-12" else [("items", some), ("additionalItems", one)]
        return made

    def _names(self, letters: str) -> list[str]:
        return [name for name in letters if self._random.random() < 0.5]

    def root(self) -> dict[str, Any]:
        """An input schema without alternatives at its root."""
        mark = {"$id": "#mark"} if self.dialect == "draft-07" else {"$anchor": "mark"}
        found = self.schema()
        beside = ("properties", "required", "additionalProperties", "patternProperties", "propertyNames")
        return {
            **({name: found[name] for name in beside if name in found} if isinstance(found, dict) else {}),
            "$schema": _DIALECTS[self.dialect],
            "type": "object",
            "$defs": {"a": self.schema(2), "m": {"type": "object", **mark}},
            "definitions": {"b": self.schema(2), "m": {"$ref": "#/$defs/m"}},
        }


@given(st.integers(0, 2**48))
def test_nothing_valid_is_refused_by_the_listed_schema(seed: int) -> None:
    """Ours: clients that check arguments themselves send everything that the stored schema accepts (CLN-1)."""
    maker = _Maker(seed)
    for _ in range(20):
        stored = maker.root()
        try:
            accepts = jsonschema_rs.validator_for(stored, offline=True).is_valid
        except ValueError:  # a reference without a target, or a loop of references
            continue
        listed = listed_schema(stored)
        check = jsonschema_rs.Draft202012Validator(listed, offline=True)
        for value in ({name: maker.value() for name in "abcd" if maker.value(0)} for _ in range(10)):
            if accepts(value):
                assert check.is_valid(value), (stored, listed, value)
