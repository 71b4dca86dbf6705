"""The bytes of server-sent events, and the ids that name places in streams."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import BadInput
from gateway.protocol.http import sse_encoding
from gateway.protocol.http.sse_encoding import StreamPosition, parse_last_event_id


def _place(name: str, ms: int, number: int, revision: int) -> StreamPosition:
    return StreamPosition(name, f"{ms}-{number}", revision if name == "g" else None)


PLACES = st.builds(
    _place,
    st.one_of(st.just("g"), st.from_regex(r"r[A-Za-z0-9_-]{8,32}", fullmatch=True)),
    st.integers(0, 10**15),
    st.integers(0, 10**6),
    st.integers(0, 10**12),
)


@given(PLACES)
def test_a_place_reads_back_as_it_was_written(place: StreamPosition) -> None:
    """Ours: the id that a client sends back is its last place (SRV-2)."""
    assert parse_last_event_id(str(place)) == place


@pytest.mark.parametrize("more", ["t", "~0123456789abcdef"])
def test_suffixes_of_ids_are_not_part_of_the_place(more: str) -> None:
    """Ours: notices and primers have ids of their own for the same place."""
    assert parse_last_event_id(f"g/5-1/17{more}") == StreamPosition("g", "5-1", 17)


@given(st.text(max_size=60))
def test_anything_else_is_no_place(text: str) -> None:
    """Ours: a client's text never becomes part of a name in Redis unread (TEN-5)."""
    try:
        place = parse_last_event_id(text)
    except BadInput:
        return
    assert str(place) == text.partition("~")[0].rstrip("abcdefghijklmnopqrstuvwxyz") or place.revision is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "g",
        "g/1-1",
        "g//1",
        "g/1-1/x",
        "r1/1-1",
        "r12345678/1-1/1",
        "*/1-1/1",
        "g/1-1/1\n",
        "G/1-1/1",
        f"g/{2**64}-0/1",
        f"g/1-{2**64 - 1}/1",
    ],
)
def test_a_malformed_place_is_refused(text: str) -> None:
    """Ours: the form is checked to the last character (TEN-5)."""
    with pytest.raises(BadInput):
        parse_last_event_id(text)


@given(st.text())
def test_an_event_is_one_line_of_json_for_every_reader(text: str) -> None:
    """Ours: some clients end lines where the format does not; nothing of the value changes (SRV-1)."""
    raw = json.dumps({"text": text}, ensure_ascii=False).encode("utf-8", "surrogatepass")

    reported = sse_encoding.event(raw, "g/1-1/1").decode("utf-8", "surrogatepass")

    assert len(reported.removesuffix("\n\n").splitlines()) == 3
    assert json.loads(reported.splitlines()[2].removeprefix("data: ")) == {"text": text}


def test_the_frames_are_as_the_format_has_them() -> None:
    """Ours: id, then event, then data, then an empty line."""
    assert sse_encoding.event(b"{}", "r12345678/1-1") == b"id: r12345678/1-1\nevent: message\ndata: {}\n\n"
    assert sse_encoding.event(b"{}") == b"event: message\ndata: {}\n\n"
    assert sse_encoding.priming_event("g/0-0/1") == b"id: g/0-0/1\nretry: 500\ndata: \n\n"
    assert (
        sse_encoding.endpoint_event("/t/a/messages?session_id=x")
        == b"event: endpoint\ndata: /t/a/messages?session_id=x\n\n"
    )
