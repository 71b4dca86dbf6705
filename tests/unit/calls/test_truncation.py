"""Cuts of large results: whole parts stay, and the omission is stated."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.calls.truncation import Truncated, cut_json, cut_text, describe

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=6), inner, max_size=6),
    max_leaves=40,
)


def compact(value: object) -> bytes:
    """The value as the gateway has it before it is cut."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def test_a_fitting_result_is_unchanged() -> None:
    """Ours: nothing is touched without need."""
    assert cut_json(b"[1,2]", 5) == Truncated(b"[1,2]")
    assert cut_text("abc", 3) == Truncated(b"abc")


def test_a_list_keeps_its_first_whole_elements() -> None:
    """Ours: no element is cut in the middle."""
    cut = cut_json(compact([{"n": number} for number in range(100)]), 60)

    assert json.loads(cut.kept) == [{"n": number} for number in range(7)]
    assert cut.notes == ("the first 7 of 100 elements are shown",)


def test_an_object_keeps_its_members_and_cuts_the_large_ones() -> None:
    """Ours: a cursor behind a long list is not lost with it."""
    value = {"items": [{"id": number} for number in range(1000)], "next": "cursor", "total": 1000}
    cut = cut_json(compact(value), 300)
    kept = json.loads(cut.kept)

    assert (kept["next"], kept["total"]) == ("cursor", 1000)
    assert kept["items"] == value["items"][: len(kept["items"])]  # type: ignore[index]  # a list, as written above
    assert 10 < len(kept["items"]) < 40
    assert cut.notes == (f"/items: the first {len(kept['items'])} of 1,000 elements are shown",)


def test_numbers_stay_as_they_were_written() -> None:
    """Ours: a cut moves bytes: no integer is rounded and no fraction rewritten."""
    body = b'{"big":123456789012345678901234567890,"f":1.10,"e":1E400,"l":[' + b"0," * 500 + b"0]}"
    cut = cut_json(body, 200)

    assert cut.kept.startswith(b'{"big":123456789012345678901234567890,"f":1.10,"e":1E400,"l":[0,0')


def test_a_first_element_that_is_too_large_is_cut_itself() -> None:
    """Ours: something is shown of everything."""
    cut = cut_json(compact([{"text": "x" * 1000, "id": 7}]), 100)
    [kept] = json.loads(cut.kept)

    assert kept["id"] == 7
    assert kept["text"].startswith("xxx")
    assert kept["text"].endswith("…")
    assert len(cut.kept) <= 100


def test_members_beyond_the_room_are_counted() -> None:
    """Ours: an object of countless keys keeps the first of them."""
    cut = cut_json(compact({f"key{number}": number for number in range(1000)}), 200)

    assert list(json.loads(cut.kept)) == [f"key{number}" for number in range(len(json.loads(cut.kept)))]
    assert any("of 1,000 members" in note for note in cut.notes)


def test_a_text_of_wide_characters_keeps_the_limit() -> None:
    """Ours: the limit is one of bytes."""
    cut = cut_json(compact("\n中" * 500), 100)

    assert len(cut.kept) <= 100
    assert json.loads(cut.kept).endswith("…")


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_depth_is_bounded(opening: str) -> None:
    """Ours: a value that is nested too deeply is left out, not walked."""
    closing = "]" if opening == "[" else "}"
    body = (opening * 200 + '"' + "x" * 1000 + '"' + closing * 200).encode()

    assert json.loads(cut_json(body, 900).kept) is not None


def test_a_result_with_too_many_parts_is_cut_behind_a_whole_one() -> None:
    """Ours: a million parts are not taken apart."""
    body = b'{"a":[[1,"x,]}"],' + b"0," * 400_000 + b'0],"z":1}'
    cut = cut_json(body, 1000)
    kept = json.loads(cut.kept)

    assert kept["a"][0] == [1, "x,]}"]
    assert len(cut.kept) <= 1000
    assert "z" not in kept
    assert "are shown" in cut.notes[0]


@pytest.mark.parametrize("repeated", [b"\\\\", b'\\"', b"x,["])
def test_a_part_that_alone_is_too_large_leaves_nothing_half(repeated: bytes) -> None:
    """Ours: a text that is not over at the limit is no part."""
    body = b'["' + repeated * 1_000_000 + b'"' + b",0" * 400_000 + b"]"

    assert json.loads(cut_json(body, 1000).kept) is None


@given(JSON, st.integers(20, 400))
def test_every_cut_result_is_json_within_the_limit(value: object, limit: int) -> None:
    """Ours: the kept part is valid, of the same kind, and states that something is missing."""
    body = compact(value)
    cut = cut_json(body, limit)
    kept = json.loads(cut.kept)

    assert len(cut.kept) <= max(limit, len(b"null")) + 8
    assert type(kept) is type(value) or kept is None
    assert bool(cut.notes) == (cut.kept != body)


def test_text_ends_with_a_line_where_one_is_near() -> None:
    """Ours: tables and event streams lose whole lines."""
    cut = cut_text("one\ntwo\nthree\n", 10)

    assert cut.kept == b"one\ntwo\n"
    assert cut.notes == ("the first 8 of 14 bytes are shown",)
    assert cut_text("é" * 10, 5).kept == "éé".encode()


def test_the_description_names_the_rest() -> None:
    """Ours: a model reads what is missing and how to get it."""
    text = describe(
        Truncated(b"", ("/items: the first 2 of 9 elements are shown",)), whole=1234, uri="gateway+result://x"
    )

    assert "1,234 bytes" in text
    assert "/items: the first 2 of 9" in text
    assert "gateway+result://x" in text
    assert "resource" not in describe(Truncated(b""), whole=1, uri=None)


def test_json_that_is_too_deep_is_cut_too() -> None:
    """Ours: depth that the parser does not read is cut after the last complete part, and no error."""
    depth = 900
    deep = b'{"a":' * depth + b'["' + b"x" * 300_000 + b'"]' + b"}" * depth

    def cut(frames: int) -> Truncated:
        return cut(frames - 1) if frames else cut_json(deep, 4096)

    assert len(cut(150).kept) <= 4096 + depth
