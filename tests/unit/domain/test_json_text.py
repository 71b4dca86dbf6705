"""JSON that every parser reads alike, and what is refused."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.http.limits import MAX_JSON_DEPTH
from gateway.domain.json_text import MAX_DIGITS, load_json, refuse_many_values
from gateway.errors import DocumentTooLarge, InvalidBody

Json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


@given(Json)
def test_output_of_python_is_read(value: Any) -> None:
    """Ours: every JSON text that means one thing is read as that."""
    try:
        raw = json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return
    assert load_json(raw) == value
    assert load_json(json.dumps(value).encode()) == value


_PIECES = st.sampled_from(
    [
        *('{"a":', '{"b":', ',"a":', ',"":', ',"é":', "{", "}", "[", "]", ",", ":", " ", "\t\r\n", "\x0b", "\ufeff"),
        *("1", "-0", "-0.0", "1.5", "1E5", "01", "1.", ".5", "+1", "1e400", "-1e-400", "0.1234567890123456789012345"),
        *("18446744073709551616", "-9223372036854775809", "9" * 400, "true", "null", "NaN", "-Infinity", "nul"),
        *('"x"', '"é"', '"\x7f"', '"\x01"', '"\\n"', '"\\u0061"', '"\\ud83d"', '"\\""', '"a":1', '"'),
    ]
)
_DECIMALS = st.from_regex(r"-?(0|[1-9][0-9]{0,40})(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,3})?", fullmatch=True)


def _read_by_another(raw: bytes) -> str:
    """The value as text, in which 1 and 1.0 differ; `refused` for what is no JSON or ambiguous."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            raise ValueError("a name occurs twice")
        return dict(pairs)

    try:
        shown = repr(json.loads(raw.decode(), object_pairs_hook=unique))
    except ValueError:
        return "refused"
    return "refused" if any(word in shown for word in ("nan", "inf", "\\ud83d")) else shown


@given(st.lists(_PIECES | _DECIMALS, max_size=12).map("".join))
def test_a_text_is_read_as_another_reader_reads_it(text: str) -> None:
    """Ours: the fast reader and the slow one take the same texts for the same values, integers and floats apart."""
    raw = text.encode()
    try:
        shown = repr(load_json(raw))
    except InvalidBody:
        shown = "refused"
    assert shown == _read_by_another(raw)


EXACT: list[tuple[bytes, object]] = [
    (b'{"a":9007199254740993}', {"a": 9007199254740993}),
    (b"123456789012345678901234567890", 123456789012345678901234567890),
    (b'{"a":{"b":1},"b":1}', {"a": {"b": 1}, "b": 1}),
    (rb'"\ud83d\ude00"', "😀"),
    (rb'"\\ud83d"', "\\ud83d"),
    (b" \r\n\t[] ", []),
    (b"[[],[],{}]", [[], [], {}]),
    (b"1e308", 1e308),
    (b"-" + b"7" * MAX_DIGITS, -int("7" * MAX_DIGITS)),
    (b'{"text":"' + b"7" * 5000 + b'"}', {"text": "7" * 5000}),
    (b"0." + b"1" * 5000, 0.1111111111111111),
]


@pytest.mark.parametrize(("raw", "value"), EXACT)
def test_a_value_stays_exact(raw: bytes, value: object) -> None:
    """Ours: integers of any size stay what they are; nothing is refused that is not ambiguous."""
    assert load_json(raw) == value


@pytest.mark.parametrize(
    ("raw", "reason", "line", "column"),
    [
        (b"", "empty", 1, 1),
        (b" \n ", "empty", 1, 1),
        (b'\xef\xbb\xbf{"a":1}', "byte order mark", 1, 1),
        ('{"a":1}'.encode("utf-16-le"), "", 1, 2),
        (b'{"a":\n"\xff"}', "not UTF-8", 2, 2),
        (b'"\xed\xa0\x80"', "not UTF-8", 1, 2),
        (b'{"a":1,\n "b":NaN}', "NaN", 2, 6),
        (b'["NaN",-Infinity]', "-Infinity", 1, 8),
        (b"[Infinity]", "Infinity", 1, 2),
        (b'{"a":1,"a":2}', "'a' occurs twice", 1, 8),
        (b'{"x":[{"a":1},\n  {"b":{},"\\u0062":2}]}', "'b' occurs twice", 2, 11),
        (b'{"a":"{\\"a\\":1,","b":["a","a"],"a":1}', "'a' occurs twice", 1, 32),
        (b'{"a":1,"a":2,"x":{"b":1,"b":1}}', "'a' occurs twice", 1, 8),
        (b'{"a":1,}', "", 1, 8),
        (b'{"a" 1}', "", 1, 6),
        (b"{'a':1}", "", 1, 2),
        (b"[1] []", "", 1, 5),
        (b'"a\nb"', "", 1, 3),
        (b"\x00", "", 1, 1),
        (b"01", "", 1, 2),
    ],
)
def test_an_ambiguous_text_is_refused_with_its_place(raw: bytes, reason: str, line: int, column: int) -> None:
    """Ours: line and column name the place, and no two readers get different values."""
    with pytest.raises(InvalidBody) as refused:
        load_json(raw)

    (fault,) = refused.value.faults
    assert reason in fault.reason
    assert (fault.line, fault.column) == (line, column)


@pytest.mark.parametrize(
    "raw",
    [
        b"1e400",
        b"[-1e999]",
        b'{"n":1e999}}}}]]',
        b'{"n":1e999, {:',
        b'{"n":1e999, "\\x":1',
        b"9" * 5000,
        rb'"\ud800"',
        rb'{"\uDFFF":1}',
        rb'["\ude00\ud83d"]',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"[" * 100_000 + b"]" * 100_000,
    ],
)
def test_unstorable_values_are_refused(raw: bytes) -> None:
    """Ours: infinite numbers, endless digits, half surrogates and bottomless nesting are no values."""
    with pytest.raises(InvalidBody):
        load_json(raw)


@pytest.mark.parametrize("beside", [b"", rb'"\n",'], ids=["read fast", "read slowly"])
@pytest.mark.parametrize("sign", [b"", b"-"])
def test_an_integer_has_at_most_so_many_digits(beside: bytes, sign: bytes) -> None:
    """Ours: 1 MB of integers with 4,290 digits held up the event loop for 130 ms when it was checked (ISO-2)."""
    load_json(b"[" + beside + sign + b"9" * MAX_DIGITS + b"]")
    with pytest.raises(InvalidBody, match="more than 640 digits"):
        load_json(b"[" + beside + sign + b"9" * (MAX_DIGITS + 1) + b"]")


@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_nesting_is_bounded_exactly(opening: bytes, closing: bytes) -> None:
    """Ours: 64 levels are read, 65 are not; many containers side by side are no depth."""
    load_json(opening * MAX_JSON_DEPTH + b"1" + closing * MAX_JSON_DEPTH)
    load_json(b"[" + b",".join([b'{"a":[]}'] * 1000) + b"]")
    with pytest.raises(InvalidBody, match="nested deeper than 64"):
        load_json(opening * (MAX_JSON_DEPTH + 1) + b"1" + closing * (MAX_JSON_DEPTH + 1))


def test_a_duplicate_in_a_large_text_is_refused_without_a_search() -> None:
    """Ours: line and column cost time, so they are left out for large texts."""
    raw = b'{"padding":"' + b"x" * 100_000 + b'","a":1,"a":2}'

    with pytest.raises(InvalidBody, match="occurs twice") as refused:
        load_json(raw)
    assert refused.value.faults[0].line is None


@given(st.binary(max_size=200))
def test_no_bytes_break_the_reader(raw: bytes) -> None:
    """Ours: untrusted bytes are a value or InvalidBody, never anything else."""
    with contextlib.suppress(InvalidBody):
        load_json(raw)


@pytest.mark.parametrize(
    ("raw", "is_refused"),
    [
        (b"[" + b"1," * 98 + b"1]", False),
        (b"[" + b"1," * 99 + b"1]", True),
        (b"[" + b"{}," * 8 + b"{}]", False),
        (b"[" + b"{}," * 9 + b"{}]", True),
        (b'["' + b"{[," * 500 + b'"]', False),
        (b'["' + b'\\",\\\\,{' * 500 + b'"]', False),
        (b'["\\\\",' + b"1," * 100 + b"1]", True),
        (b'["\\\\\\"",' + b"1," * 90 + b"1]", False),
        (b"[" + b'"",' * 300 + b'""]', True),
        (b"[" * 11 + b'"' + b'\\"' * 500, True),
    ],
)
def test_values_are_counted_before_they_are_read(raw: bytes, is_refused: bool) -> None:
    """Ours: the content of strings is no value, and counting costs no more than reading (ISO-2)."""
    if is_refused:
        with pytest.raises(DocumentTooLarge, match="more than 100 JSON values, or more than 10 objects"):
            refuse_many_values(raw, values=100, containers=10)
    else:
        refuse_many_values(raw, values=100, containers=10)
