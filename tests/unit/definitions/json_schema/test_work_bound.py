"""Cost of a schema: derived from the schema alone, and never too low."""

from typing import Any

import pytest

from gateway.definitions.json_schema.assertion_costs import Load
from gateway.definitions.json_schema.pattern_costs import BYTE, cost_of_pattern, count_states
from gateway.definitions.json_schema.tree import SchemaTree
from gateway.definitions.json_schema.validator import depth_of
from gateway.definitions.json_schema.work_bound import ENDLESS, UNKNOWN, WorkBound, work_of


def _work(schema: dict[str, Any]) -> WorkBound:
    return work_of(SchemaTree(schema))


def _unevaluated(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(depth):
        schema = {"allOf": [schema], "unevaluatedProperties": {"type": "integer"}}
    return schema


def test_names_are_counted_like_schemas() -> None:
    """Ours: a list of required names is as dear as it is long (ISO-2)."""
    few, many = (_work({"required": [f"r{n}" for n in range(count)]}).load for count in (1, 101))

    assert many.container - few.container == 200
    assert many.copied_container - few.copied_container == 100


def test_each_way_to_a_schema_counts() -> None:
    """Ours: definitions that name the next one twice double the work (ISO-2)."""
    definitions: dict[str, Any] = {
        f"d{number}": {"anyOf": [{"$ref": f"#/$defs/d{number + 1}"}] * 2} for number in range(10)
    }
    doubled = _work({"$ref": "#/$defs/d0", "$defs": {**definitions, "d10": {"required": ["a"]}}})

    assert doubled.load.container > 2 * 1_024


def test_nested_unevaluated_keywords_multiply() -> None:
    """Ours: each of them checks again what lies inside, so that the work grows with a power of the depth (ISO-2)."""
    works = [_work(_unevaluated(depth)).load.container for depth in (4, 8, 12)]

    assert works[1] > 20 * works[0]
    assert works[2] > 20 * works[1]


@pytest.mark.parametrize(
    ("schema", "growth"),
    [
        ({"items": {"$ref": "#"}}, 1),
        ({"properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}}}, 1),
        ({"items": {"$ref": "#"}, "additionalProperties": {"$ref": "#"}}, 1),
        ({"prefixItems": [{"$ref": "#"}], "items": {"$ref": "#"}}, 2),
        ({"items": {"$ref": "#"}, "contains": {"$ref": "#"}}, 2),
        ({"properties": {"a": {"$ref": "#"}}, "patternProperties": {"a": {"$ref": "#"}, "^a": {"$ref": "#"}}}, 3),
        ({"properties": {"x": {"anyOf": [{"$ref": "#"}, {"items": {"$ref": "#"}}]}}}, 1),
        ({"allOf": [{"items": {"$ref": "#"}}, {"items": {"$ref": "#"}}]}, 2),
    ],
)
def test_ways_back_are_counted_for_one_part(schema: dict[str, Any], growth: int) -> None:
    """Ours: only what looks at the same part again makes a deep value dear (ISO-2)."""
    assert _work(schema).copied_growth == growth


def test_the_dearest_schema_of_a_cycle_counts_for_all_of_it() -> None:
    """Ours: a part may meet any schema of a cycle, not only the one that leads in (ISO-2)."""
    definitions = {
        "a": {"properties": {"x": {"$ref": "#/$defs/b"}}},
        "b": {"properties": {"x": {"$ref": "#/$defs/a"}}, "required": [f"r{n}" for n in range(500)]},
    }

    assert _work({"$ref": "#/$defs/a", "$defs": definitions}).load.container >= 1_000


def test_a_schema_that_applies_to_itself_has_no_bound() -> None:
    """Ours: such a schema is never checked (ISO-2)."""
    assert _work({"anyOf": [{"$ref": "#"}]}) is UNKNOWN
    assert _work({"properties": {"a": {"$ref": "#/properties/a"}}}) is UNKNOWN


def test_units_follow_the_parts_of_a_value_and_its_depth() -> None:
    """Ours: containers, other values and bytes have prices of their own (ISO-2)."""
    work = WorkBound(load=Load(5, 2, 64, 3, 1), growth=2, copied_growth=2)

    assert work.units(containers=2, values=10, size=100, depth=3) == (10 + 20 + 100) * 8
    assert work.units(containers=1, values=1, size=1, depth=64) == ENDLESS
    assert work.copies(values=10, depth=2) == 10 * (3 * 2 + 1) * 4


@pytest.mark.parametrize(
    ("pattern", "states"),
    [
        ("", 0),
        ("^[a-z]+$", 1),
        ("abc", 3),
        (r"^\d{4}-\d{2}$", 7),
        ("(?:ab){10}", 20),
        ("(?:(?:a{10}){10}){10}", 1_000),
        ("a{2,30}b?", 31),
        (r"\p{L}{5}", 5),
        ("(((a{999}){999}){999}){999}", 2**20),
        ("a{99999999}", 2**20),
        ("{3}", 0),
    ],
)
def test_counted_repetitions_of_a_pattern_are_written_out(pattern: str, states: int) -> None:
    """Ours: a pattern of ten characters may have a million states (ISO-2)."""
    assert count_states(pattern) == states


def test_a_simple_pattern_costs_little_for_each_byte() -> None:
    """Ours: a megabyte of base64 is matched on the event loop, one intricate pattern is not (ISO-2)."""
    assert cost_of_pattern("^[A-Za-z0-9+/]*={0,2}$") < BYTE
    assert cost_of_pattern("(?:[ab]*a[ab]{100}[cd])+$") > 50 * BYTE


def test_depth_is_counted_without_recursion() -> None:
    """Ours: a value of any depth is measured."""
    value: object = 1
    for _ in range(5_000):
        value = [value]

    assert depth_of(value) == 5_000
    assert depth_of({"a": {"b": [1]}, "c": 1}) == 3
    assert depth_of("x") == 0
