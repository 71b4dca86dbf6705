"""Arguments are judged by the listed schema."""

import json
from typing import Any

import pytest

from gateway.definitions.json_schema.validator import DeferredCheck, Validator, compile_input, find_faults
from gateway.definitions.json_schema.validator_cache import Validators
from gateway.errors import NotYetSupported


def _faults(validator: Validator, value: object) -> object:
    return validator.check(value)


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
        ({"id": 1, "when": 5}, "/when"),
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
    """Ours: values that the schema permits pass; the format of an argument is an annotation (CLN-2)."""
    for when in ("2026-11-21", "soon"):
        assert find_faults(compile_input(_definition(SCHEMA)), {"id": 1, "when": when}) == ()


def test_at_most_ten_bounded_faults_are_reported() -> None:
    """Ours: a hostile argument does not buy a huge answer."""
    schema = {"type": "object", "properties": {"x": {"type": "array", "items": {"type": "integer"}}}}

    validator = compile_input(_definition(schema))

    assert len(find_faults(validator, {"x": ["y" * 20] * 100})) == 10
    reasons = [fault.reason for fault in find_faults(validator, {"x": ["y" * 10_000]})]
    assert reasons == ['the value is not of type "integer"']


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

    assert not _faults((await Validators().of(_definition(many))), {"p1": "x"})


def test_a_pattern_bomb_is_linear() -> None:
    """Ours: matching costs no more than the text is long (TEN-5)."""
    schema = {"type": "object", "properties": {"x": {"type": "string", "pattern": "^(a+)+$"}}}

    assert _faults(compile_input(_definition(schema)), {"x": "a" * 100_000 + "!"})


def _nested(depth: int, leaf: object, **beside: object) -> dict[str, Any]:
    value: Any = leaf
    for _ in range(depth):
        value = {"x": value, **beside}
    return {"x": value, **beside}


_SELF = {"anyOf": [{"$ref": "#/$defs/node"}, {"$ref": "#/$defs/node"}]}
_NODE = {"type": "object", "properties": {"x": _SELF}, "additionalProperties": False}
RECURSIVE = {
    "type": "object",
    "properties": {"x": {"$ref": "#/$defs/node"}, "y": {"type": "integer"}},
    "required": ["z"],
    "$defs": {"node": _NODE},
}


def test_a_deep_failure_in_a_recursive_schema_is_explained_in_bounded_time() -> None:
    """Ours: explaining a refusal never holds up other calls; without the bound this takes longer than a lifetime."""
    faults = find_faults(compile_input(_definition(RECURSIVE)), _nested(60, {"bad": 1}) | {"y": "no"})

    assert [fault.pointer for fault in faults] == ["", "/x", "/y"]
    assert "'z'" in faults[0].reason or '"z"' in faults[0].reason


def test_a_shallow_failure_in_a_recursive_schema_is_explained_in_full() -> None:
    """Ours: the bound costs ordinary callers nothing."""
    faults = find_faults(compile_input(_definition(RECURSIVE)), {"z": 1, "x": {"bad": 1}})

    assert [fault.pointer for fault in faults] == ["/x"]
    assert "bad" in faults[0].reason


def test_a_value_that_looks_endless_is_checked_as_far_as_units_last() -> None:
    """Ours: definitions that name each other twice multiply the estimate per level; no estimate refuses (ISO-2)."""
    definitions = {
        f"d{number}": {"properties": {"x": {"anyOf": [{"$ref": f"#/$defs/d{(number + 1) % 16}"}] * 2}}}
        for number in range(16)
    }
    validator = compile_input(
        _definition({"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": definitions})
    )

    assert not _faults(validator, _nested(3, {}))
    assert not _faults(validator, _nested(60, {"bad": 1}))
    assert find_faults(validator, {"x": 5}) == ()


@pytest.mark.parametrize(
    ("dialect", "schema", "valid", "invalid"),
    [
        ("http://json-schema.org/draft-07/schema#", {"items": [{"type": "integer"}]}, {"a": [1]}, {"a": ["x"]}),
        (
            "https://json-schema.org/draft/2019-09/schema",
            {"items": [{"type": "integer"}], "additionalItems": False},
            {"a": [1]},
            {"a": [1, 2]},
        ),
        (
            "https://json-schema.org/draft/2020-12/schema",
            {"prefixItems": [{"type": "integer"}]},
            {"a": [1]},
            {"a": ["x"]},
        ),
    ],
)
def test_arguments_are_judged_by_the_dialect_that_the_schema_names(
    dialect: str, schema: dict[str, Any], valid: dict[str, Any], invalid: dict[str, Any]
) -> None:
    """JSON Schema: `$schema` determines the meaning of keywords (TDF-2)."""
    validator = compile_input(_definition({"$schema": dialect, "type": "object", "properties": {"a": schema}}))

    assert not _faults(validator, valid)
    assert find_faults(validator, invalid)[0].pointer.startswith("/a")


def test_a_schema_beyond_the_counter_still_judges() -> None:
    """Ours: a schema that is too large to be counted and metered is checked by a child process (ISO-2)."""
    many = {"anyOf": [{"const": number} for number in range(20_001)]}
    validator = compile_input(_definition({"type": "object", "properties": {"a": many, "b": {"$ref": "#"}}}))

    assert isinstance(validator.check({"a": 5}), DeferredCheck)
    assert "cannot be checked here" in find_faults(validator, {"a": 5})[0].reason


def test_a_large_flat_value_is_explained_as_far_as_that_is_cheap() -> None:
    """Ours: a long list names the argument, a short one the element."""
    schema = {"type": "object", "properties": {"x": {"type": "array", "items": {"anyOf": [{"type": "integer"}] * 9}}}}
    validator = compile_input(_definition(schema))

    assert find_faults(validator, {"x": [1, "a"]})[0].pointer == "/x/1"
    assert find_faults(validator, {"x": ["a"] * 30_000})[0].pointer == "/x/0"
    assert find_faults(validator, {"x": 5, "y": list(range(30_000))})[0].pointer == "/x"


def test_a_fault_without_an_argument_is_reported_for_the_whole() -> None:
    """Ours: there is always a reason."""
    schema = {"type": "object", "properties": {}, "maxProperties": 1, "additionalProperties": {"$ref": "#/$defs/a"}}
    validator = compile_input(_definition(schema | {"$defs": {"a": {"items": {"type": "integer"}}}}))

    assert [fault.pointer for fault in find_faults(validator, {"x": list(range(30_000)), "y": 1})] == [""]


class _Defect:
    """A compiled schema of a library with a defect."""

    def is_valid(self, instance: object) -> bool:
        raise RuntimeError("never")

    iter_errors = is_valid


async def test_a_defect_never_becomes_an_internal_error() -> None:
    """Ours: a schema that cannot be compiled or checked refuses its calls with words (CAL-2, CAL-4)."""
    validator = compile_input(_definition(SCHEMA))
    validator._compiled = _Defect()  # pyright: ignore[reportPrivateUsage]

    assert "cannot be checked against its schema" in find_faults(validator, {})[0].reason
    assert find_faults(compile_input(_definition(SCHEMA)), {"a": {1, 2}})[0].reason == "is not JSON"
    with pytest.raises(NotYetSupported, match="cannot compile the schema"):
        await Validators().of(_definition({"type": 5}))


async def test_an_output_schema_has_its_own_validator() -> None:
    """Ours: results are held to the output schema, arguments to the input schema (TDF-5)."""
    both = {"name": "t", "inputSchema": SCHEMA, "outputSchema": {"type": "object", "required": ["x"]}}
    validators = Validators()
    output = await validators.of_output(json.dumps(both).encode())

    assert output is not None
    assert not _faults(output, {"x": 1})
    assert _faults(output, {"id": 1})
    assert not _faults((await validators.of(json.dumps(both).encode())), {"id": 1})
    assert await validators.of_output(_definition(SCHEMA)) is None
    assert await validators.of_output(_definition({"type": "object", "description": '"outputSchema"'})) is None
