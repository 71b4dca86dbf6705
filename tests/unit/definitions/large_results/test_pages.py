"""Pages of documents: every part can be reached, and the parts are the document again."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.definitions.large_results.document import ResultDocument, read_document
from gateway.definitions.large_results.element_conditions import ElementCondition
from gateway.definitions.large_results.json_parts import part_at, parts_of
from gateway.definitions.large_results.limits import MAX_PARTS
from gateway.definitions.large_results.outline import outline
from gateway.definitions.large_results.pages import PartRequest, read_part
from gateway.errors import ArgumentsInvalid

ROOM = 1024 + 80
"""A page with 80 bytes of values."""

_NAMES = st.one_of(st.sampled_from(["", "~", "/", "~1", "0", "-", "*", "a b", "é", '"', "\\"]), st.text(max_size=4))
_LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**30), 10**30),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=150),
)
_VALUES = st.recursive(
    _LEAVES, lambda inner: st.lists(inner, max_size=6) | st.dictionaries(_NAMES, inner, max_size=6), max_leaves=25
)


def _page(document: ResultDocument, room: int = ROOM, **wanted: Any) -> dict[str, Any]:
    raw = read_part(document, PartRequest(**wanted), room=room)
    assert len(raw) <= room + 1024
    page: dict[str, Any] = json.loads(raw)
    return page


def _whole(document: ResultDocument, pointer: str = "") -> Any:
    """Reassemble the value at a pointer from pages, as a client does."""
    parts: list[Any] = []
    offset: int | None = 0
    kind = ""
    while offset is not None:
        page = _page(document, pointer=pointer, offset=offset)
        kind, more = page["kind"], [(one["pointer"], one) for one in page.get("omitted", ())]
        if kind in {"array", "lines"}:
            end = page.get("next_offset", page["total"])
            large = {int(found.rpartition("/")[2]): _whole(document, found) for found, _ in more}
            values = page["value"].splitlines(keepends=True) if kind == "lines" else page["value"]
            rest = iter(values)
            parts += [large[index] if index in large else next(rest) for index in range(offset, end)]
        elif kind == "object":
            parts += page["value"].items()
            parts += [(_name(found), _whole(document, found)) for found, _ in more]
        else:
            parts.append(page["value"])
        offset = page.get("next_offset")
    if kind in {"text", "lines"}:
        return "".join(parts)
    return parts if kind == "array" else dict(parts) if kind == "object" else parts[0]


def _name(pointer: str) -> str:
    return pointer.rpartition("/")[2].replace("~1", "/").replace("~0", "~")


def _json(value: object) -> ResultDocument:
    found = read_document(json.dumps(value).encode())
    assert found is not None
    return found


@settings(max_examples=60, deadline=None)
@given(value=st.lists(_VALUES, max_size=8) | st.dictionaries(_NAMES, _VALUES, max_size=8))
def test_pages_are_the_document_again(value: Any) -> None:
    """Ours: without loss, whatever names, numbers and nesting a document has (OAS-10)."""
    again = _whole(_json(value))

    assert json.dumps(again, sort_keys=True) == json.dumps(value, sort_keys=True)


@settings(max_examples=50, deadline=None)
@given(text=st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"], include_characters="\n"), min_size=1))
def test_lines_are_the_text_again(text: str) -> None:
    """Ours: a text is read like a list of its lines, and long lines by characters (OAS-10)."""
    document = ResultDocument(body=(text * 3).encode(), is_json=False)

    assert _whole(document) == text * 3


def test_numbers_keep_their_spelling() -> None:
    """Ours: values are copied as bytes."""
    document = read_document(b"[1.10, 1e400, 12345678901234567890123456789, -0]")

    assert document is not None
    assert read_part(document, PartRequest(), room=5000).endswith(b"[1.10,1e400,12345678901234567890123456789,-0]}")


def test_repeated_names_stay() -> None:
    """Ours: pages have all members of one name; a pointer leads to the last (RFC 8259, section 4)."""
    document = read_document(b'{"a":1,"b":{"x":1,"x":[2]},"a":3}')

    assert document is not None
    assert read_part(document, PartRequest(), room=5000).endswith(b'{"a":1,"b":{"x":1,"x":[2]},"a":3}}')
    assert _page(document, pointer="/b/x")["value"] == [2]
    assert _page(document, pointer="/a")["value"] == 3


@pytest.mark.parametrize("raw", [b'{"caf\\u00e9":{"a":[1]},"b\\/":2,"\\ud800":"x","c":[]}', b"{}", b'{"":{"":""}}'])
def test_members_with_escapes_are_found_one_by_one(raw: bytes) -> None:
    """Ours: a text that the parser cannot split in one call is scanned, with the same parts."""
    found = dict(parts_of(raw))

    assert [json.loads(part) for part in found.values()] == list(json.loads(raw).values())
    if "b/" in found:
        assert set(found) == {"café", "b/", "?", "c"}


def test_the_words_of_the_parser_are_known() -> None:
    """Ours: an object with many members is split at the places that the parser names."""
    value = {f"k{number}": [number, {"a": "]}"}] for number in range(30_000)}
    raw = json.dumps(value, separators=(",", ":")).encode()

    assert raw.count(b",") > 50_000
    assert {name: json.loads(part) for name, part in parts_of(raw)} == value
    assert part_at(raw, "k29999") == b'[29999,{"a":"]}"}]'
    with pytest.raises(msgspec.DecodeError, match=r"trailing characters \(byte 4\)"):
        msgspec.json.decode(b"[1],2")


def test_conditions_select_elements() -> None:
    """Ours: equality and contained text at a pointer; positions identify the elements (OAS-10)."""
    items = [{"n": number, "s": {"t": f"Name {number}"}, "ok": number % 2 == 0} for number in range(40)]
    document = _json({"items": items})

    def select(**condition: Any) -> list[int]:
        found = _page(document, 60_000, pointer="/items", where=(ElementCondition(**condition),))
        assert found["value"] == [items[index] for index in found["indexes"]]
        return list(found["indexes"])

    assert select(pointer="/n", equals=(7.0,)) == [7]
    assert select(pointer="/n", equals=("7",)) == []
    assert select(pointer="/ok", equals=(1,)) == []
    assert select(pointer="/ok", equals=(False,)) == list(range(1, 40, 2))
    assert select(pointer="/s/t", contains="name 3") == [3, *range(30, 40)]
    assert select(pointer="/s", equals=("x",)) == []
    assert select(pointer="/none", contains="x") == []
    some = _page(document, 60_000, pointer="/items", where=(ElementCondition(pointer="/ok", equals=(True,)),), limit=2)
    assert (some["indexes"], some["next_offset"]) == ([0, 2], 3)


def test_conditions_of_one_read_are_bounded() -> None:
    """Ours: a long list without matches continues on the next page."""
    document = _json([0] * 150_000)
    nothing = (ElementCondition(equals=(1,)),)

    first = _page(document, where=nothing)
    second = _page(document, where=nothing, offset=first["next_offset"])
    assert (first["next_offset"], first["value"]) == (100_000, [])
    assert "next_offset" not in second


@pytest.mark.parametrize(
    ("count", "depth", "leaf", "tested"),
    [(16_000, 8, "1", 15_385), (4, 64, '"' + "x" * 1_500_000 + '"', 3)],
    ids=["many parses", "many bytes"],
)
def test_deep_conditions_of_one_read_are_bounded(count: int, depth: int, leaf: str, tested: int) -> None:
    """Ours: conditions cost tokens and bytes, not elements; the next page goes on with the next element (OAS-10)."""
    element, pointer = "[" * depth + leaf + "]" * depth, "/0" * depth
    document = read_document(f"[{','.join([element] * count)}]".encode())
    deep = [ElementCondition(pointer=pointer, equals=(json.loads(leaf),))] * 4
    wanted = (*deep, ElementCondition(pointer=pointer, equals=("no",)))

    assert document is not None
    first = _page(document, where=wanted)
    assert (first["value"], first["next_offset"]) == ([], tested)
    assert "next_offset" not in _page(document, where=wanted, offset=tested)


def test_conditions_share_containers() -> None:
    """Ours: pointers of several conditions may meet, end inside one another, and lead nowhere."""
    document = _json([{"a": {"b": [number, str(number)], "": number % 3}} for number in range(30)])

    def select(*conditions: tuple[str, str | int]) -> list[int]:
        where = tuple(ElementCondition(pointer=pointer, equals=(value,)) for pointer, value in conditions)
        return list(_page(document, 60_000, where=where)["indexes"])

    assert select(("/a/b/0", 7), ("/a/b/1", "7"), ("/a/", 1)) == [7]
    assert select(("/a/b/0", 7), ("/a/b/0", 8)) == []
    assert select(("/a/", 1), ("/a/b", 1)) == []
    assert select(("/a/", 0), ("/a/b/2", 1)) == []


@pytest.mark.parametrize(
    ("pointer", "reason"),
    [
        ("/b", "no part 'b' there: the whole result is an object; its first members are a"),
        ("/a/7", "/a is an array of 2"),
        ("/a/x", "/a is an array of 2"),
        ("/a/00", "/a is an array of 2"),
        ("/a/0/c", "/a/0 is neither an array nor an object"),
    ],
)
def test_a_wrong_pointer_is_explained(pointer: str, reason: str) -> None:
    """Ours: the error has what is there instead."""
    with pytest.raises(ArgumentsInvalid) as refused:
        _page(_json({"a": [1, 2]}), pointer=pointer)

    assert reason in refused.value.faults[0].reason


def test_a_pointer_may_not_read_the_document_endlessly() -> None:
    """Ours: each level reads its container, so depth times size has a limit."""
    depth = 300
    raw = b'{"a":' * depth + b'"' + b"x" * 4_000_000 + b'"' + b"}" * depth

    with pytest.raises(ArgumentsInvalid) as refused:
        _page(ResultDocument(body=raw, is_json=True), pointer="/a" * depth)
    assert "too deep" in refused.value.faults[0].reason


def test_values_without_elements_take_no_conditions() -> None:
    """Ours: a condition on a text is an error, not an empty page."""
    with pytest.raises(ArgumentsInvalid):
        _page(_json({"a": "x"}), pointer="/a", where=(ElementCondition(equals=("x",)),))


@pytest.mark.parametrize(
    "body",
    [b'"text"', b"7", b"[1", b"[" * 5000 + b"]" * 5000, b"[" + b"1," * (MAX_PARTS + 1) + b"1]"],
    ids=["text", "number", "broken", "deep", "dense"],
)
def test_unreadable_json_is_text(body: bytes) -> None:
    """Ours: scalars, broken, deep and dense JSON are read by lines and characters."""
    document = read_document(body)

    assert document is not None
    assert not document.is_json
    assert _page(document)["kind"] == "lines"


def test_binary_is_no_document() -> None:
    """Ours: bytes that are no text have no parts."""
    assert read_document(b"\xff\x00") is None


def test_a_text_of_too_many_lines_is_one_line() -> None:
    """Ours: lines are not counted one by one without a bound."""
    document = ResultDocument(body=b"\n" * (MAX_PARTS + 1), is_json=False)

    page = _page(document)
    assert (page["total"], page["omitted"][0]["pointer"]) == (1, "/0")
    assert _page(document, pointer="/0", offset=MAX_PARTS)["value"] == "\n"


def test_an_outline_is_bounded() -> None:
    """Ours: wide and deep documents have short outlines, with pointers and counts."""
    wide = {"items": [{"id": 1, "tags": ["a"]}] * 500, **{f"k{number}": {"x": "y" * 2000} for number in range(200)}}
    lines = outline(_json(wide).body, room=2000).splitlines()

    assert lines[0].startswith("whole: object with 201 members, ")
    assert lines[0].endswith(" bytes, of which the first 20 follow")
    assert lines[1].startswith("/items: array of 500, ")
    assert lines[2:6] == [
        "/items/*: object with 2 members",
        "/items/*/id: number",
        "/items/*/tags: array of 1",
        "/items/*/tags/*: string",
    ]
    short = outline(_json(wide).body, room=300)
    assert short.endswith("\n…")
    assert len(short) <= 310


def test_names_in_an_outline_are_printable() -> None:
    """Ours: control characters of a document do not reach the text of a summary."""
    assert "\x1b" not in outline(_json({"a\x1b[2J": 1, "a/~": 2}).body, room=2000)
    assert "/a~1~0: number" in outline(_json({"a/~": 2}).body, room=2000)
