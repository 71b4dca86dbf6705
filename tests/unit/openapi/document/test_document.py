"""Reading: a text that is no document is refused, and the refusal names the place."""

import time
from typing import Any

import pytest

from gateway.errors import DocumentTooLarge, InvalidDocument
from gateway.openapi.document.document import read_document, read_tree
from gateway.openapi.document.limits import MAX_DOCUMENT_BYTES


def refusal(raw: Any) -> InvalidDocument:
    with pytest.raises(InvalidDocument) as refused:
        read_document(raw)
    return refused.value


def place(raw: bytes) -> tuple[int | None, int | None]:
    (fault,) = refusal(raw).faults
    return fault.line, fault.column


def test_json_that_breaks_off_is_placed() -> None:
    """Ours: line and column of the first mistake in JSON."""
    assert place(b'{"openapi": "3.1.0",\n  "info": }') == (2, 11)


def test_yaml_that_does_not_parse_is_placed() -> None:
    """Ours: line and column of the first mistake in YAML."""
    assert place(b"openapi: 3.1.0\ninfo:\n  title: [a, b\npaths: {}\n")[0] == 4


def test_bytes_that_are_no_text_are_placed() -> None:
    """Ours: a document is UTF-8."""
    assert place(b'{"openapi":\n "\xff"}') == (2, 3)


@pytest.mark.parametrize("number", ["0x" + "f" * 298, "0x" + "f" * 256])
def test_a_number_without_a_float_stays_text(number: str) -> None:
    """Ours: no number of a document ends the process that reads it (OAS-7)."""
    assert read_document(f"openapi: 3.1.0\npaths: {{}}\nx-n: {number}\n".encode()).root["x-n"] == number


@pytest.mark.parametrize(
    ("text", "problem", "where"),
    [
        ("a: 1\nb: *x\n", "has no anchor before it", (2, 4)),
        ("a: &x [1, *x]\n", "has no anchor before it", (1, 11)),
        ("a: &x {b: {c: *x}}\n", "has no anchor before it", (1, 15)),
        ("a: !!python/object:os.system 1\n", "tag", (1, 4)),
        ("a: !custom {b: 1}\n", "tag", (1, 4)),
        ("!!python/name:os.system a: 1\n", "tag", (1, 1)),
        ("a: 1\n---\nb: 2\n", "more than one", (2, 1)),
        ("? [a, b]\n: 1\n", "key", (1, 3)),
    ],
)
def test_yaml_beyond_plain_values_is_refused(text: str, problem: str, where: tuple[int, int]) -> None:
    """Ours: nothing in YAML can expand, build objects or hide a second document."""
    refused = refusal(text.encode())

    assert problem in str(refused)
    assert (refused.faults[0].line, refused.faults[0].column) == where


ALIASES = [
    ("a: &x {b: 1}\nc: *x\n", {"a": {"b": 1}, "c": {"b": 1}}),
    ("a: &x 1\nb: [*x, *x]\n", {"a": 1, "b": [1, 1]}),
    ("a: &x 1\nb: &x 2\nc: *x\n", {"a": 1, "b": 2, "c": 2}),
    ("&k a: 1\nb: *k\n", {"a": 1, "b": "a"}),
    ("a: &k x\n*k : 1\n", {"a": "x", "x": 1}),
    ("a: &x {b: 1, c: 2}\nd: {<<: *x, c: 3}\n", {"a": {"b": 1, "c": 2}, "d": {"b": 1, "c": 3}}),
    ("a: &x {b: 1}\ny: &y {b: 2, c: 3}\nd: {<<: [*x, *y]}\n", {"d": {"b": 1, "c": 3}}),
    ("a: {<<: 1}\nb: {'<<': {c: 1}}\n", {"a": {"<<": 1}, "b": {"<<": {"c": 1}}}),
]


@pytest.mark.parametrize(("text", "value"), ALIASES)
def test_aliases_and_merged_mappings_are_written_out(text: str, value: dict[str, object]) -> None:
    """YAML 1.2: an alias is the value of its anchor; `<<` is read as most readers do (OAS-1)."""
    found = read_tree(text.encode())

    assert isinstance(found, dict)
    assert found.items() >= value.items()


@pytest.mark.parametrize("item", ["[{0}, {0}]", "{{k: {0}, l: {0}}}", "{{<<: [{0}, {0}]}}"])
def test_a_bomb_of_aliases_is_refused_while_it_is_read(item: str) -> None:
    """Ours: an alias counts with all its values, so two to the fiftieth are never there (OAS-1)."""
    lines = ["b0: &b0 {x: 1, y: 2}", *(f"b{n}: &b{n} {item.format(f'*b{n - 1}')}" for n in range(1, 50))]
    before = time.thread_time()

    with pytest.raises(DocumentTooLarge):
        read_tree("\n".join(lines).encode())
    assert time.thread_time() - before < 2


def test_aliases_inside_aliases_count_their_depth() -> None:
    """Ours: an expanded reference is no deeper than a document may be (OAS-1)."""
    lines = ["b0: &b0 [[[[[[[[[[x]]]]]]]]]]", *(f"b{n}: &b{n} [*b{n - 1}]" for n in range(1, 200))]

    with pytest.raises(DocumentTooLarge, match="levels deep"):
        read_tree("\n".join(lines).encode())


@pytest.mark.parametrize(
    "raw",
    [
        b"[" * 200 + b"]" * 200,
        b"a: " + b"[" * 5_000 + b"]" * 5_000,
        b"a: " + b"[" * 200_000,
        b'{"a":' * 300 + b"1" + b"}" * 300,
    ],
)
def test_depth_is_limited(raw: bytes) -> None:
    """Ours: a document that is too deep is refused before it is built."""
    with pytest.raises(DocumentTooLarge):
        read_document(raw)


def test_json_deeper_than_any_parser_goes_is_refused() -> None:
    """Ours: a hostile depth is an answer, never a crash."""
    assert isinstance(refusal(b"[" * 100_000), InvalidDocument)


def test_size_is_limited() -> None:
    """Ours: 32 MiB."""
    with pytest.raises(DocumentTooLarge):
        read_document(b"{" + b" " * MAX_DOCUMENT_BYTES + b"}")


def test_the_number_of_values_is_limited() -> None:
    """Ours: a million values."""
    with pytest.raises(DocumentTooLarge):
        read_document(b'{"openapi":"3.1.0","x":[' + b"1," * 1_000_000 + b"1]}")


@pytest.mark.parametrize(
    ("raw", "pointer"),
    [
        (b"[]", ""),
        (b'"text"', ""),
        (b"just text", ""),
        (b"{}", ""),
        (b'{"openapi":"4.0.0","paths":{}}', "/openapi"),
        (b'{"openapi":3,"paths":{}}', "/openapi"),
        (b'{"swagger":"1.2","paths":{}}', "/swagger"),
        (b'{"swagger":"3.0","paths":{}}', "/swagger"),
        (b'{"openapi":"2.0","paths":{}}', "/openapi"),
        (b'{"openapi":"3.0.0"}', ""),
        (b'{"swagger":"2.0"}', ""),
        (b'{"openapi":"3.1.0"}', ""),
        (b'{"openapi":"3.1.0","paths":[]}', "/paths"),
    ],
)
def test_a_text_that_is_no_openapi_is_refused_with_a_pointer(raw: bytes, pointer: str) -> None:
    """Ours: the fault points at the member that is wrong."""
    assert [fault.pointer for fault in refusal(raw).faults] == [pointer]


@pytest.mark.parametrize("raw", [b"", b"  \n", b"\xef\xbb\xbf"])
def test_nothing_is_no_document(raw: bytes) -> None:
    """Ours: emptiness is reported as such."""
    assert "empty" in str(refusal(raw))


@pytest.mark.parametrize(
    ("raw", "where"),
    [
        (b'{\n  // the version\n  "openapi": "3.0.3"}', (2, 3)),
        ('{"title": "é", // of the page\n "openapi": "3.0.3"}'.encode(), (1, 16)),
        (b'{"openapi": /* newest */ "3.0.3"}', (1, 13)),
        (b'{"openapi": "3.0.3"} # end', (1, 22)),
        (b'  // the API\n{"openapi": "3.0.3"}', (1, 3)),
        (b'\xef\xbb\xbf/* the API */ {"openapi": "3.0.3"}', (1, 1)),
    ],
)
def test_a_comment_in_json_is_named(raw: bytes, where: tuple[int, int]) -> None:
    """OAS-1: the refusal names the comment, its place, and the remedy; a text that looks like one is none."""
    (fault,) = refusal(raw).faults

    assert (fault.line, fault.column) == where
    assert "JSON has no comments" in fault.reason
    assert "comments" not in str(refusal(b'{"url": "//host/*#", "openapi": tru}'))


@pytest.mark.parametrize(
    "raw",
    [
        b"<!DOCTYPE html>\n<html><body>Sign in</body></html>",
        b"\xef\xbb\xbf  \n<HTML lang=en>",
        b"<!-- Swagger UI -->\n<html>",
        b'<?xml version="1.0"?><definitions/>',
        b'<div id="swagger-ui" style="a: b">',
    ],
)
def test_a_page_differs_from_a_document(raw: bytes) -> None:
    """OAS-1: the refusal of an HTML page names it as one, and what to look for."""
    error = refusal(raw)

    assert "HTML or XML page" in str(error)
    assert "openapi.json" in str(error)


def test_yaml_that_begins_like_markup_is_still_yaml() -> None:
    """OAS-1: a merge key and a quoted key are no pages."""
    assert "page" not in str(refusal(b"<<: {a: 1}\nb: 2"))
    assert "page" not in str(refusal(b"<a: 1"))


def test_an_object_that_is_no_json_is_refused() -> None:
    """Ours: a parsed document holds JSON values only."""
    assert "not a JSON object" in str(refusal({"openapi": "3.1.0", "paths": {"x": object()}}))


def test_yaml_follows_the_core_schema() -> None:
    """YAML 1.2: keys are text, `no` is a word, a date is text, octal needs its 0o."""
    text = """
openapi: 3.1.0
info: {title: yes, version: 2024-01-01}
paths: {}
x-values:
  200: {a: NO, b: true, c: 0777, d: 0o17, e: 12:30, f: ~, g: 1e3, h: '1', i: .inf, j: 0x1F, k: -7, l: 1_000}
  null: 1
  1.5: x
x-big: 123456789012345678901234567890
x-tagged: !!str 5
"""
    found = read_document(text.encode())

    assert found.title == "yes"
    assert found.version == "2024-01-01"
    assert found.root["x-values"] == {
        "200": {
            "a": "NO",
            "b": True,
            "c": 777,
            "d": 15,
            "e": "12:30",
            "f": None,
            "g": 1000.0,
            "h": "1",
            "i": ".inf",
            "j": 31,
            "k": -7,
            "l": "1_000",
        },
        "null": 1,
        "1.5": "x",
    }
    assert found.root["x-big"] == 123456789012345678901234567890.0
    assert found.root["x-tagged"] == "5"


@pytest.mark.parametrize(
    "raw", [b'{"openapi":"3.1.0","paths":{},"x":1,"x":2}', b"openapi: 3.1.0\npaths: {}\nx: 1\nx: 2"]
)
def test_of_equal_keys_the_last_one_wins(raw: bytes) -> None:
    """Ours: the same choice in JSON and YAML."""
    assert read_document(raw).root["x"] == 2


def test_unquoted_version_numbers_are_understood() -> None:
    """Ours: YAML makes numbers of `3.1` and `1.0`; the document means texts."""
    found = read_document(b"openapi: 3.1\ninfo: {title: T, version: 1.0}\npaths: {}\n")

    assert found.dialect == (3, 1)
    assert found.version == "1.0"


def test_webhooks_alone_make_a_document() -> None:
    """OpenAPI 3.1: one of paths, components and webhooks is enough."""
    assert read_document(b'{"openapi":"3.1.0","webhooks":{}}').dialect == (3, 1)


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    """Ours: editors put it there."""
    assert read_document(b'\xef\xbb\xbf{"openapi":"3.2.0","paths":{}}').dialect == (3, 2)


def test_titles_are_one_clean_line() -> None:
    """Ours: nothing invisible reaches an admin's terminal."""
    raw = '{"openapi":"3.1.0","info":{"title":"A\\u202eb\\u0000\\n c"},"paths":{}}'

    assert read_document(raw.encode()).title == "Ab c"
