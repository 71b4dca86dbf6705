"""Conditions on arguments: true, false, and undecidable conditions."""

import math
from typing import Any

import pytest

from gateway.definitions.policy.conditions import CompiledCondition, Truth
from gateway.definitions.policy.limits import MAX_MEMBERS, MAX_TEXT_LENGTH
from gateway.domain.tenancy.policy import ArgumentCondition, ConditionOperator


def _holds(operator: str, value: Any, arguments: dict[str, object], pointer: str = "/a") -> Truth:
    condition = ArgumentCondition(pointer=pointer, operator=ConditionOperator(operator), value=value)
    return CompiledCondition(condition).holds(arguments)


@pytest.mark.parametrize(
    ("operator", "limit", "given", "outcome"),
    [
        ("greater", 1000, 1001, True),
        ("greater", 1000, 1000, False),
        ("greater", 1000, 1e3, False),
        ("greater", 1000, 1000.5, True),
        ("greater", 1000, 10**400, True),
        ("greater", 2**53, 2**53 + 1, True),
        ("less", 0, -1, True),
        ("less", 0, -0.0, False),
        ("at_least", 5, 5, True),
        ("at_most", 5, 6, False),
        ("equals", 1000, 1e3, True),
        ("equals", 1000, 1001, False),
        ("not_equals", 1000, 1e3, False),
        ("equals", True, True, True),
        ("equals", True, False, False),
        ("in", (1, 2), 2.0, True),
        ("in", (1, 2), 3, False),
    ],
)
def test_numbers_are_compared_exactly(operator: str, limit: Any, given: object, outcome: Truth) -> None:
    """Ours: integers and floating point numbers are compared by their value (SAF-5)."""
    assert _holds(operator, limit, {"a": given}) is outcome


@pytest.mark.parametrize("operator", ["greater", "less", "at_least", "at_most", "equals", "not_equals"])
@pytest.mark.parametrize(
    "given", ["1001", True, None, [1001], {"value": 1001}, math.nan, math.inf, -math.inf, "", "1e3", "１００１"]
)
def test_another_form_of_a_number_is_not_decidable(operator: str, given: object) -> None:
    """Ours: a text, list, boolean, null or object may mean a number to the receiver (SAF-5)."""
    assert _holds(operator, 1000, {"a": given}) is None


@pytest.mark.parametrize("operator", [one for one in ConditionOperator if one not in {"exists", "in"}])
def test_a_missing_argument_is_not_decidable(operator: ConditionOperator) -> None:
    """Ours: the receiver may have a default for it (SAF-5)."""
    value = "/tmp" if operator in {"inside", "outside", "starts_with", "matches", "contains"} else 1

    assert _holds(operator.value, value, {}) is None
    assert _holds(operator.value, value, {"b": 1}) is None


@pytest.mark.parametrize(
    ("operator", "value", "given", "outcome"),
    [
        ("equals", "admin", "admin", True),
        ("equals", "admin", "viewer", False),
        ("not_equals", "viewer", "admin", True),
        ("in", ("admin", "owner"), "owner", True),
        ("in", ("admin", "owner"), "viewer", False),
        ("starts_with", "prod-", "prod-1", True),
        ("starts_with", "prod-", "test-1", False),
        ("contains", "DROP TABLE", "x; DROP TABLE y", True),
        ("contains", "DROP TABLE", "select 1", False),
        ("contains", "admin", ["viewer", "admin"], True),
        ("contains", "admin", ["viewer"], False),
        ("contains", "admin", [], False),
        ("contains", 7, [1, 7.0], True),
        ("matches", "^[a-z]+$", "abc", True),
        ("matches", "^[a-z]+$", "abc\n", False),
        ("matches", "a+", "b", False),
        ("inside", "/tmp", "/tmp/a", True),
        ("outside", "/tmp", "/etc", True),
        ("outside", "/tmp", "/tmp/a", False),
    ],
)
def test_texts_are_compared_as_they_are(operator: str, value: Any, given: object, outcome: Truth) -> None:
    """Ours: only the very text makes a condition true (SAF-5)."""
    assert _holds(operator, value, {"a": given}) is outcome


@pytest.mark.parametrize(
    "given",
    [
        "Admin",
        " admin",
        "admin\n",
        "ad\u200bmin",
        "ａｄｍｉｎ",
        "ádmin",
        "a\u0301dmin",
        "adm\u00adin",
        "admin\0",
        "ADMIN\ufe0f",
    ],
)
@pytest.mark.parametrize("operator", ["equals", "not_equals", "starts_with", "contains"])
def test_a_text_that_resembles_the_value_is_not_decidable(operator: str, given: str) -> None:
    """Ours: many receivers fold case, spaces, accents and compatibility forms (SAF-5)."""
    expected = True if operator in {"starts_with", "contains"} and "admin" in given and given[0] == "a" else None
    if operator == "contains" and "admin" in given:
        expected = True

    assert _holds(operator, "admin", {"a": given}) is expected


@pytest.mark.parametrize(
    ("operator", "value", "given"),
    [
        ("equals", "admin", ["admin"]),
        ("equals", "1001", 1001),
        ("equals", "true", True),
        ("starts_with", "a", ["a"]),
        ("inside", "/tmp", ["/tmp/a", "/etc"]),
        ("outside", "/tmp", {"path": "/etc"}),
        ("outside", "/tmp", "/tmp/../etc"),
        ("matches", "a", 1),
        ("matches", "^drop", "ｄｒｏｐ"),
        ("matches", "a", "b\ud800"),
        ("contains", "a", {"a": 1}),
        ("contains", 7, "7"),
        ("contains", "admin", [["admin"]]),
        ("contains", "admin", ["viewer", 5]),
        ("contains", "admin", ["x"] * (MAX_MEMBERS + 1)),
        ("equals", "a", "b" * (MAX_TEXT_LENGTH + 1)),
        ("contains", "a", "b" * (MAX_TEXT_LENGTH + 1)),
        ("matches", "a", "b" * (MAX_TEXT_LENGTH + 1)),
    ],
)
def test_another_type_or_too_much_is_not_decidable(operator: str, value: Any, given: object) -> None:
    """Ours: a list around a value, another type or a flood of text does not evade a rule (SAF-5)."""
    assert _holds(operator, value, {"a": given}) is None


@pytest.mark.parametrize(
    ("pointer", "arguments", "outcome"),
    [
        ("/a", {"a": None}, True),
        ("/a", {}, False),
        ("/a/b", {"a": {"b": 1}}, True),
        ("/a/b", {"a": {}}, False),
        ("/a/0", {"a": [1]}, True),
        ("/a/1", {"a": [1]}, False),
        ("/a~1b/c~0d", {"a/b": {"c~d": 1}}, True),
        ("/a~01", {"a~1": 1}, True),
        ("/", {"": 1}, True),
        ("/a/b", {"a": [{"b": 1}]}, None),
        ("/a/b", {"a": "{}"}, None),
        ("/a/-", {"a": [1]}, None),
        ("/a/01", {"a": [1, 2]}, None),
        ("/a/99999999999999999999", {"a": [1]}, None),
        ("/a", {"A": 1}, None),
        ("/a", {"a": 1, "A": 2}, None),
        ("/a", {"a": 1, "a\u200b": 2}, None),
        ("/amount", {"amount": 1, "ａmount": 2}, None),
        ("/a", {"a": 1, "b" * (MAX_TEXT_LENGTH + 1): 2}, None),
        ("/a", {"a": 1, **{f"n{number}": 0 for number in range(MAX_MEMBERS)}}, None),
    ],
)
def test_a_pointer_names_one_place(pointer: str, arguments: dict[str, object], outcome: Truth) -> None:
    """Ours: names that differ only in case or invisible characters may be one name to the receiver (SAF-5)."""
    assert _holds("exists", True, arguments, pointer) is outcome
    assert _holds("exists", False, arguments, pointer) is (None if outcome is None else not outcome)
