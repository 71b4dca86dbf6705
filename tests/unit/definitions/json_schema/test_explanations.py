"""Explanations: the nearest branch of a choice with its faults, and no cut values."""

import json
import time
from typing import Any

import pytest

from gateway.definitions.json_schema.limits import MAX_REASON_LENGTH
from gateway.definitions.json_schema.validator import compile_output, find_faults

CAT = {"type": "object", "properties": {"kind": {"const": "cat"}, "lives": {"type": "integer"}}, "required": ["kind"]}
DOG = {"type": "object", "properties": {"kind": {"const": "dog"}, "bark": {"type": "string"}}, "required": ["kind"]}
SHARED = {"Cat": CAT, "Dog": DOG}
PETS = {"oneOf": [{"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}]}


def faults(schema: Any, value: Any) -> list[tuple[str, str]]:
    """The faults of one argument, as a caller reads them."""
    whole = {"type": "object", "properties": {"v": schema}, "$defs": SHARED}
    validator = compile_output(json.dumps({"outputSchema": whole}).encode())  # its formats are asserted
    return [(fault.pointer, fault.reason) for fault in find_faults(validator, {"v": value})]


@pytest.mark.parametrize("padding", [0, 400, 10_000])
def test_the_nearest_branch_is_named_with_its_faults(padding: int) -> None:
    """Ours: the constant that fits decides, however long the value is (OAS-8)."""
    found = faults(PETS, {"kind": "cat", "lives": "nine", "note": "x" * padding})

    assert found == [
        ("/v", "is not valid under exactly one of the schemas listed in the 'oneOf' keyword; the nearest is 'Cat'"),
        ("/v/lives", '"nine" is not of type "integer" (\'Cat\')'),
    ]


def test_a_value_of_no_branch_is_answered_with_the_values_there_are() -> None:
    """Ours: a wrong discriminator is one fault, not one of each branch (OAS-8)."""
    assert faults(PETS, {"kind": "fish"}) == [("/v/kind", 'must be one of "cat", "dog"')]


def test_at_most_three_faults_of_a_branch_are_shown() -> None:
    """Ours: three faults are enough to go on with (OAS-8)."""
    branch = {"title": "Wide", "properties": {name: {"type": "integer"} for name in "abcde"}}
    found = faults({"anyOf": [branch, {"type": "string"}]}, dict.fromkeys("abcde", "x"))

    assert len(found) == 4
    assert "the nearest is 'Wide'" in found[0][1]


def test_a_branch_without_a_name_has_its_number() -> None:
    """Ours: branches are countable (OAS-8)."""
    found = faults({"anyOf": [{"required": ["a", "b"]}, {"required": ["a"]}]}, {"long": "y" * 500})

    assert found[0][1].endswith("the nearest is branch 2 of 2")
    assert found[1] == ("/v", '"a" is a required property (branch 2 of 2)')


def test_choices_inside_choices_are_followed() -> None:
    """Ours: the fault that a caller can act on may be two choices deep (OAS-8)."""
    inner = {"anyOf": [{"type": "integer"}, {"type": "string", "maxLength": 1}]}
    found = faults({"anyOf": [{"type": "object", "properties": {"a": inner}}, {"type": "null"}]}, {"a": "long"})

    assert [pointer for pointer, _ in found] == ["/v", "/v/a", "/v/a"]
    assert "longer than 1" in found[2][1]


def test_a_value_that_fits_twice_is_not_explained_by_a_branch() -> None:
    """JSON Schema: `oneOf` refuses what fits two branches."""
    [(pointer, reason)] = faults({"oneOf": [{"type": "string"}, {"maxLength": 900}]}, "y" * 400)

    assert (pointer, len(reason) < MAX_REASON_LENGTH) == ("/v", True)
    assert "exactly one" in reason


@pytest.mark.parametrize(
    ("schema", "value", "reason"),
    [
        ({"type": "integer"}, "y" * 400, 'the value is not of type "integer"'),
        ({"enum": ["a", "b"]}, "y" * 400, 'the value is not one of "a", "b"'),
        ({"enum": ["x" * 400]}, "y" * 400, "the value does not satisfy `enum`"),
        ({"pattern": "^a"}, "y" * 400, 'the value does not match "^a"'),
        ({"format": "date"}, "y" * 400, 'the value is not a "date"'),
        ({"uniqueItems": True}, ["y" * 400] * 2, "the value has non-unique elements"),
        ({"properties": {"a": {}}, "additionalProperties": False}, {"y" * 400: 1}, "the value does not satisfy"),
        ({"required": ["y" * 400]}, {}, "the value does not satisfy `required`"),
        ({"not": {}}, "y" * 400, "the value is valid under the schema of `not`"),
        (False, "y" * 400, "the value is not allowed"),
        ({"contains": {"type": "integer"}}, ["y" * 400], "the value has no element"),
        ({"propertyNames": {"maxLength": 2}}, {"y" * 400: 1}, "the value does not satisfy `propertyNames`"),
    ],
)
def test_a_long_value_is_left_out_and_never_cut(schema: Any, value: Any, reason: str) -> None:
    """Ours: a reason has no part of a value (OAS-8)."""
    [(_, found)] = faults(schema, value)

    assert found.startswith(reason)
    assert "yyy" not in found


def test_explaining_many_branches_is_bounded() -> None:
    """Ours: the comparison of branches has a limit (ISO-2)."""
    branch = {"type": "object", "properties": {f"p{number}": {"type": "integer"} for number in range(20)}}
    schema = {"anyOf": [{**branch, "required": ["z"]}] * 300}
    value = {f"p{number}": "x" for number in range(20)}
    before = time.thread_time()
    found = faults(schema, value)

    assert len(found) == 4 or "too intricate" in found[0][1]
    assert time.thread_time() - before < 5
