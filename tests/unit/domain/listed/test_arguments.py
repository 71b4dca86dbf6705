"""Listed names of arguments."""

import re

from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.listed.arguments import renamed_arguments, restore_arguments
from gateway.domain.listed.definition import listed_definition, renamed_of

_NAMES = st.lists(st.text("ab_.-[]部é", max_size=4) | st.text("k[", min_size=60, max_size=70), unique=True, max_size=8)


@given(_NAMES)
def test_arguments_arrive_under_their_stored_names(stored: list[str]) -> None:
    """Ours: each listed name is unique and taken by every client; both forms reach the handler (CLN-1, CAL-1)."""
    renamed = renamed_arguments(stored)
    listed = [renamed.get(name, name) for name in stored]
    given_values: dict[str, object] = {name: number for number, name in enumerate(listed)}

    assert all(re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", name) for name in listed)
    assert len(set(listed)) == len(stored)
    assert restore_arguments(given_values, renamed) == {name: number for number, name in enumerate(stored)}
    assert restore_arguments(dict.fromkeys(stored), renamed) == dict.fromkeys(stored)


def test_a_renamed_argument_has_its_original_name() -> None:
    """Ours: a model distinguishes `sentAt>` and `sentAt<` (CLN-1)."""
    schema = {
        "type": "object",
        "properties": {"sentAt>": {"type": "string", "description": "After."}, "会社": {"type": "string"}, "b": {}},
        "required": ["会社"],
        "anyOf": [{"properties": {"k[]": {"type": "array"}}}, {"required": ["b"]}],
    }
    stored = {"name": "x", "inputSchema": schema}
    listed = listed_definition(stored, "x")["inputSchema"]

    assert listed == {
        "type": "object",
        "properties": {
            "sentAt_": {"type": "string", "description": "`sentAt>`: After."},
            "__": {"type": "string", "description": "`会社`"},
            "b": {},
            "k__": {"type": "array", "items": {}, "description": "`k[]`"},
        },
        "required": ["__"],
    }
    assert renamed_of(stored) == {"sentAt>": "sentAt_", "会社": "__", "k[]": "k__"}
