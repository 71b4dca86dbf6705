"""Whether arguments are judged by the schema that was listed."""

import json
from typing import Any

import pytest

from gateway.definitions.validators import Validators, compile_input, find_faults


def _definition(schema: dict[str, Any], name: str = "t") -> bytes:
    return json.dumps({"name": name, "inputSchema": schema}).encode()


SCHEMA = {
    "type": "object",
    "properties": {"id": {"type": "integer"}, "when": {"type": "string", "format": "date"}, "a/b": {"type": "array"}},
    "required": ["id"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("arguments", "pointer"),
    [
        ({}, ""),
        ({"id": "x"}, "/id"),
        ({"id": 1, "when": "soon"}, "/when"),
        ({"id": 1, "a/b": 3}, "/a~1b"),
        ({"id": 1, "x": 2}, ""),
    ],
)
def test_a_fault_points_at_the_place(arguments: dict[str, object], pointer: str) -> None:
    """Ours: path and reason of what is wrong (CAL-2)."""
    faults = find_faults(compile_input(_definition(SCHEMA)), arguments)

    assert [fault.pointer for fault in faults] == [pointer]
    assert faults[0].reason


def test_valid_arguments_have_no_fault() -> None:
    """Ours: what the schema allows is let through."""
    assert find_faults(compile_input(_definition(SCHEMA)), {"id": 1, "when": "2026-11-21"}) == ()


def test_at_most_ten_faults_are_told_and_each_is_bounded() -> None:
    """Ours: a hostile argument does not buy a huge answer."""
    schema = {"type": "object", "properties": {"x": {"type": "array", "items": {"type": "integer"}}}}

    faults = find_faults(compile_input(_definition(schema)), {"x": ["y" * 10_000] * 100})

    assert len(faults) == 10
    assert max(len(fault.reason) for fault in faults) <= 300


async def test_a_schema_is_compiled_once() -> None:
    """Ours: calls share the validator of a definition."""
    validators = Validators()

    assert await validators.of(_definition(SCHEMA)) is await validators.of(_definition(SCHEMA))


async def test_the_least_used_validator_is_dropped() -> None:
    """Ours: the cache is bounded."""
    validators = Validators(capacity=2)
    first = await validators.of(_definition(SCHEMA, "a"))
    await validators.of(_definition(SCHEMA, "b"))
    await validators.of(_definition(SCHEMA, "c"))

    assert await validators.of(_definition(SCHEMA, "a")) is not first


async def test_a_large_schema_is_compiled_off_the_event_loop() -> None:
    """Ours: compiling does not hold up other calls."""
    many = {"type": "object", "properties": {f"p{number}": {"type": "string"} for number in range(2000)}}

    assert (await Validators().of(_definition(many))).is_valid({"p1": "x"})


def test_a_pattern_bomb_is_linear() -> None:
    """Ours: matching costs no more than the text is long (TEN-5)."""
    schema = {"type": "object", "properties": {"x": {"type": "string", "pattern": "^(a+)+$"}}}

    assert not compile_input(_definition(schema)).is_valid({"x": "a" * 100_000 + "!"})
