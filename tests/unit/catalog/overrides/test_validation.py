"""Whether what is wanted otherwise of an imported tool can be."""

from typing import Any

import msgspec
import pytest

from gateway.catalog.overrides.validation import validate_override
from gateway.domain.overrides import NOTHING, OverrideFields
from gateway.errors import ToolValidationError

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
        (OverrideFields(pinned={"idd": 1}), ["/pinned/idd"]),
        (OverrideFields(pinned={"a/b": 1, "x": 2}), ["/pinned/a~1b", "/pinned/x"]),
        (OverrideFields(pinned={"id": 0}), ["/pinned/id"]),
        (OverrideFields(pinned={"id": "1"}), ["/pinned/id"]),
        (OverrideFields(pinned={"region": "asia"}), ["/pinned/region"]),
        (OverrideFields(pinned={"region": "x" * 70_000}), ["/pinned"]),
        (OverrideFields(name="has space"), ["/name"]),
        (OverrideFields(name="x" * 65), ["/name"]),
        (OverrideFields(title="a\x1b[0m"), ["/title"]),
        (OverrideFields(description="a\N{RIGHT-TO-LEFT OVERRIDE}"), ["/description"]),
        (OverrideFields(result={"pointer": "items"}), ["/result/pointer"]),
        (OverrideFields(result={"keep": ["id"]}), ["/result/keep/0"]),
        (OverrideFields(result={"pick": 1}), ["/result/pick"]),
        (OverrideFields(annotations={"readOnly": True}), ["/annotations/readOnly"]),
    ],
)
def test_what_cannot_be_had_is_refused_at_its_place(changes: OverrideFields, pointers: list[str]) -> None:
    """Ours: a pin must be an argument with a value that it takes; the rest is held to the protocol (OAS-6)."""
    with pytest.raises(ToolValidationError) as refused:
        validate_override(changes, DEFINITION)

    assert [fault.pointer for fault in refused.value.faults] == pointers


def test_the_refusal_of_a_pin_names_the_arguments_there_are() -> None:
    """Ours: a typing mistake is seen at once (OAS-6)."""
    with pytest.raises(ToolValidationError, match="its arguments: id, region"):
        validate_override(OverrideFields(pinned={"idd": 1}), DEFINITION)


def test_a_pin_need_not_fix_all_that_is_required() -> None:
    """Ours: what is not pinned is the caller's to give (OAS-6)."""
    changes = OverrideFields(pinned={"region": "eu"})

    assert validate_override(changes, DEFINITION) == changes


def test_members_that_say_nothing_are_not_stored() -> None:
    """Ours: an override that wants nothing otherwise is none (OAS-6)."""
    said = OverrideFields(hidden=False, enabled=True, annotations={}, pinned={}, result={})

    assert validate_override(said, DEFINITION) == NOTHING
    assert validate_override(said, DEFINITION).is_empty
    assert validate_override(OverrideFields(enabled=False), DEFINITION) == OverrideFields(enabled=False)
