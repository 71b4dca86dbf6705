"""Validation of overrides of an imported tool."""

from typing import Any

import msgspec
import pytest

from gateway.catalog.overrides.validation import validate_override
from gateway.domain.overrides import Hints, Override, ResultParts
from gateway.errors import ToolValidationError
from tests.support.overrides import make_changes

_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"id": {"type": "integer", "minimum": 1}, "region": {"$ref": "#/$defs/Region"}},
    "required": ["id"],
    "additionalProperties": False,
    "$defs": {"Region": {"enum": ["eu", "us"]}},
}
DEFINITION = msgspec.json.encode({"name": "get_pet", "inputSchema": _SCHEMA})


@pytest.mark.parametrize(
    ("changes", "pointers"),
    [
        (make_changes(pinned={"idd": 1}), ["/pinned/idd"]),
        (make_changes(pinned={"a/b": 1, "x": 2}), ["/pinned/a~1b", "/pinned/x"]),
        (make_changes(pinned={"id": 0}), ["/pinned/id"]),
        (make_changes(pinned={"id": "1"}), ["/pinned/id"]),
        (make_changes(pinned={"region": "asia"}), ["/pinned/region"]),
        (make_changes(pinned={"region": "x" * 70_000}), ["/pinned"]),
        (make_changes(title="a\x1b[0m"), ["/title"]),
        (make_changes(description="a\N{RIGHT-TO-LEFT OVERRIDE}"), ["/description"]),
    ],
)
def test_an_impossible_override_is_refused_at_its_place(changes: Override, pointers: list[str]) -> None:
    """Ours: a pin must be an argument with a value that it takes; the rest is held to the protocol (OAS-6)."""
    with pytest.raises(ToolValidationError) as refused:
        validate_override(changes, DEFINITION)

    assert [fault.pointer for fault in refused.value.faults] == pointers


def test_the_refusal_of_a_pin_names_the_arguments_there_are() -> None:
    """Ours: a typing mistake is seen at once (OAS-6)."""
    with pytest.raises(ToolValidationError, match="its arguments: id, region"):
        validate_override(make_changes(pinned={"idd": 1}), DEFINITION)


def test_a_pin_need_not_fix_all_that_is_required() -> None:
    """Ours: the caller provides each argument without a pin (OAS-6)."""
    changes = make_changes(pinned={"region": "eu"})

    assert validate_override(changes, DEFINITION) == changes


def test_empty_members_are_not_stored() -> None:
    """Ours: an override that wants nothing otherwise is none (OAS-6)."""
    given = make_changes(hidden=False, enabled=True, annotations=Hints(), pinned={}, result=ResultParts())

    assert validate_override(given, DEFINITION) == make_changes()
    assert validate_override(given, DEFINITION).is_empty
    assert validate_override(make_changes(enabled=False), DEFINITION) == make_changes(enabled=False)
