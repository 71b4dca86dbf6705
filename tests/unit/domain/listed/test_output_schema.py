"""Loose output schemas: a promise of a document that is too strict is not listed, and nothing else is lost."""

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.definitions.json_schema.dialects import compile_schema
from gateway.domain.json_access import as_list, as_object
from gateway.domain.listed.output_schema import loose_output_schema
from tests.support.examples import at_least
from tests.support.random_schemas import NAMES, RandomSchemas

_TEXT = {"type": "string"}


LOOSE: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"type": "string", "format": "date-time", "maxLength": 9}, {"type": ["string", "null"], "maxLength": 9}),
    ({"type": ["string", "null"]}, {"type": ["string", "null"]}),
    ({"enum": ["a", "b"], "type": "string"}, {"enum": ["a", "b", None], "type": ["string", "null"]}),
    ({"const": 1, "description": "d"}, {"enum": [1, None], "description": "d"}),
    ({"const": {"a": 1}}, {}),
    ({"type": "object", "required": ["a"], "additionalProperties": False}, {"type": ["object", "null"]}),
    ({"properties": {"a": _TEXT}}, {"properties": {"a": {"type": ["string", "null"]}}}),
    (
        {"type": "array", "minItems": 1, "uniqueItems": True, "items": _TEXT},
        {"type": ["array", "null"], "items": {"type": ["string", "null"]}},
    ),
    ({"oneOf": [_TEXT, {"$ref": "#/$defs/x"}]}, {"anyOf": [{"type": ["string", "null"]}, {"$ref": "#/$defs/x"}]}),
    ({"anyOf": [{}], "oneOf": [_TEXT]}, {"anyOf": [{}], "allOf": [{"anyOf": [{"type": ["string", "null"]}]}]}),
    ({"$ref": "#/properties/a/oneOf/0", "not": _TEXT, "if": _TEXT, "then": _TEXT}, {}),
]


@pytest.mark.parametrize(("stored", "loose"), LOOSE)
def test_a_member_is_loose(stored: dict[str, Any], loose: dict[str, Any]) -> None:
    """Ours: no formats, nothing required, null allowed; types, names and values of the document stay (TDF-5)."""
    whole = loose_output_schema({"type": "object", "properties": {"v": stored}, "$defs": {"x": stored}})

    assert whole == {"type": "object", "properties": {"v": loose}, "$defs": {"x": loose}}


def test_the_result_itself_is_an_object() -> None:
    """MCP: structured content is an object, so null is no result (TDF-5)."""
    assert loose_output_schema({"type": "object", "anyOf": [{"type": "object", "required": ["a"]}]}) == {
        "type": "object",
        "anyOf": [{"type": ["object", "null"]}],
    }


def _with_gaps(value: Any, chance: Random) -> Any:
    """The value with members that are absent or null."""
    if (elements := as_list(value)) is not None:
        return [_with_gaps(one, chance) for one in elements]
    if (members := as_object(value)) is None:
        return value
    kept = {name: _with_gaps(one, chance) for name, one in members.items() if chance.random() < 0.7}
    return {name: None if chance.random() < 0.3 else one for name, one in kept.items()}


@settings(max_examples=at_least(300))
@given(seed=st.integers(0, 2**40))
def test_every_valid_result_stays_valid_with_gaps(seed: int) -> None:
    """Ours: for any schema, a conforming result is taken, and also one that lacks members or has null (TDF-5)."""
    chance = Random(seed)
    made = RandomSchemas(chance, oddity=0)
    schema = made.object_schema() | {"$defs": made.definitions()}
    try:
        stored = compile_schema(schema, asserts_formats=False)
    except ValueError:  # an annotation of another dialect
        return
    loose = compile_schema(loose_output_schema(schema))
    for _ in range(6):
        value = {name: made.value() for name in NAMES if chance.random() < 0.6}
        if stored.is_valid(value):
            assert loose.is_valid(value), value
            assert loose.is_valid(gaps := _with_gaps(value, chance)), gaps
