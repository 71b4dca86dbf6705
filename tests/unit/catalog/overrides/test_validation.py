"""Whether what is wanted otherwise of an imported tool can be."""

from typing import Any

import msgspec
import pytest

from gateway.catalog.overrides.validation import settle_wishes
from gateway.domain.overrides import NOTHING, Wishes
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
    ("wishes", "pointers"),
    [
        (Wishes(pinned={"idd": 1}), ["/pinned/idd"]),
        (Wishes(pinned={"a/b": 1, "x": 2}), ["/pinned/a~1b", "/pinned/x"]),
        (Wishes(pinned={"id": 0}), ["/pinned/id"]),
        (Wishes(pinned={"id": "1"}), ["/pinned/id"]),
        (Wishes(pinned={"region": "asia"}), ["/pinned/region"]),
        (Wishes(pinned={"region": "x" * 70_000}), ["/pinned"]),
        (Wishes(name="has space"), ["/name"]),
        (Wishes(name="x" * 65), ["/name"]),
        (Wishes(title="a\x1b[0m"), ["/title"]),
        (Wishes(description="a\N{RIGHT-TO-LEFT OVERRIDE}"), ["/description"]),
        (Wishes(result={"pointer": "items"}), ["/result/pointer"]),
        (Wishes(result={"keep": ["id"]}), ["/result/keep/0"]),
        (Wishes(result={"pick": 1}), ["/result/pick"]),
        (Wishes(annotations={"readOnly": True}), ["/annotations/readOnly"]),
    ],
)
def test_what_cannot_be_had_is_refused_at_its_place(wishes: Wishes, pointers: list[str]) -> None:
    """Ours: a pin must be an argument with a value that it takes; the rest is held to the protocol (OAS-6)."""
    with pytest.raises(ToolValidationError) as refused:
        settle_wishes(wishes, DEFINITION)

    assert [fault.pointer for fault in refused.value.faults] == pointers


def test_the_refusal_of_a_pin_names_the_arguments_there_are() -> None:
    """Ours: a typing mistake is seen at once (OAS-6)."""
    with pytest.raises(ToolValidationError, match="it has: id, region"):
        settle_wishes(Wishes(pinned={"idd": 1}), DEFINITION)


def test_a_pin_need_not_fix_all_that_is_required() -> None:
    """Ours: what is not pinned is the caller's to give (OAS-6)."""
    wishes = Wishes(pinned={"region": "eu"})

    assert settle_wishes(wishes, DEFINITION) == wishes


def test_members_that_say_nothing_are_not_stored() -> None:
    """Ours: an override that wants nothing otherwise is none (OAS-6)."""
    said = Wishes(hidden=False, enabled=True, annotations={}, pinned={}, result={})

    assert settle_wishes(said, DEFINITION) == NOTHING
    assert settle_wishes(said, DEFINITION).is_empty
    assert settle_wishes(Wishes(enabled=False), DEFINITION) == Wishes(enabled=False)
