"""JSON results are cut at pointers and paths, in linear time and without a change of the input."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.definitions.projection import drop, is_path, is_pointer, keep, point
from gateway.errors import HandlerFailed

RFC: dict[str, Any] = {
    "foo": ["bar", "baz"],
    "": 0,
    "a/b": 1,
    "c%d": 2,
    "e^f": 3,
    "g|h": 4,
    "i\\j": 5,
    'k"l': 6,
    " ": 7,
    "m~n": 8,
}
PETS: dict[str, Any] = {
    "items": [{"id": 1, "owner": {"name": "Ann", "secret": "x"}}, {"id": 2}, 5],
    "next": None,
    "*": "star",
}


@pytest.mark.parametrize(
    ("pointer", "found"),
    [
        ("", RFC),
        ("/foo", ["bar", "baz"]),
        ("/foo/0", "bar"),
        ("/", 0),
        ("/a~1b", 1),
        ("/c%d", 2),
        ("/e^f", 3),
        ("/g|h", 4),
        ("/i\\j", 5),
        ('/k"l', 6),
        ("/ ", 7),
        ("/m~0n", 8),
    ],
)
def test_the_examples_of_the_rfc(pointer: str, found: object) -> None:
    """RFC 6901, section 5."""
    assert point(RFC, pointer) == found


@pytest.mark.parametrize("pointer", ["/foo/2", "/foo/-1", "/foo/01", "/foo/-", "/foo/x", "/bar", "/foo/0/x", "/a"])
def test_a_pointer_without_a_target_is_reported(pointer: str) -> None:
    """Ours: an answer of another form is no silent null."""
    with pytest.raises(HandlerFailed, match="no value at"):
        point(RFC, pointer)


@pytest.mark.parametrize(
    ("paths", "kept"),
    [
        (["/next"], {"next": None}),
        (["/items/*/id"], {"items": [{"id": 1}, {"id": 2}]}),
        (["/items/0"], {"items": [PETS["items"][0]]}),
        (["/items/*/owner/name", "/items/1/id"], {"items": [{"owner": {"name": "Ann"}}, {"id": 2}]}),
        (["/items", "/items/0/id"], {"items": PETS["items"]}),
        (["/*"], PETS),
        (["/missing", "/next/x"], {}),
    ],
)
def test_only_parts_of_paths_are_kept(paths: list[str], kept: object) -> None:
    """Ours: `*` matches every element or member; an absent one is left out."""
    assert keep(PETS, paths) == kept


@pytest.mark.parametrize(
    ("paths", "left"),
    [
        (["/items"], {"next": None, "*": "star"}),
        (["/items/*/owner", "/next", "/*x"], {"items": [{"id": 1}, {"id": 2}, 5], "*": "star"}),
        (["/items/*/owner/secret", "/items/1"], {**PETS, "items": [{"id": 1, "owner": {"name": "Ann"}}, 5]}),
        (["/*"], {}),
        (["/missing/x", "/next/y"], PETS),
    ],
)
def test_parts_of_paths_are_dropped(paths: list[str], left: object) -> None:
    """Ours: the rest stays as it is."""
    assert drop(PETS, paths) == left


def test_a_value_without_parts_has_nothing_to_keep_or_drop() -> None:
    """Ours: a part without a path to it does not pass."""
    assert keep("text", ["/a"]) is None
    assert keep([], ["/a"]) == []
    assert drop("text", ["/a"]) == "text"
    assert keep(["a"], ["/0"]) == ["a"]


def test_many_paths_through_every_level_stay_linear() -> None:
    """Ours: names and `*` at each level are followed side by side, not multiplied."""
    value: Any = 1
    for _ in range(60):
        value = {"a": value, "b": 2}
    paths = ["".join("/a" if number >> bit & 1 else "/*" for bit in range(60)) for number in range(100)]

    assert keep(value, paths) is not value
    assert drop(value, paths) is not value


@pytest.mark.parametrize(
    ("text", "pointer", "path"),
    [("", True, False), ("/a", True, True), ("a", False, False), ("/~2", False, False), ("/" * 513, False, False)],
)
def test_pointers_and_their_forms(text: str, pointer: bool, path: bool) -> None:
    """RFC 6901, section 3; a path leads to a part."""
    assert is_pointer(text) is pointer
    assert is_path(text) is path


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("ab*/~"), inner, max_size=4),
    max_leaves=20,
)
PATHS = st.lists(
    st.lists(st.sampled_from(["a", "b", "*", "0", "~1", "~0"]), min_size=1, max_size=4).map(
        lambda tokens: "/" + "/".join(tokens)
    ),
    min_size=1,
    max_size=5,
)


def structure(value: object) -> str | None:
    """True if the value is a list or an object."""
    return "list" if isinstance(value, list) else "object" if isinstance(value, dict) else None


@given(JSON, PATHS)
def test_cutting_keeps_the_form_and_changes_nothing_given(value: Any, paths: list[str]) -> None:
    """Ours: lists stay lists, objects objects; what is given stays as it was."""
    before = copy.deepcopy(value)
    kept, left = keep(value, paths), drop(value, paths)

    assert value == before
    assert structure(left) == structure(value)
    assert structure(kept) == structure(value)
