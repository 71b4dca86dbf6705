"""Streams of events as far as they are read."""

import pytest

from gateway.upstream.event_stream import EventStreamReader, is_event_stream
from gateway.upstream.limits import MAX_EVENTS


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("text/event-stream", True),
        ("Text/Event-Stream; charset=utf-8", True),
        ("text/event-streams", False),
        ("text/plain", False),
        ("", False),
    ],
)
def test_a_stream_is_known_by_its_type(kind: str, expected: bool) -> None:
    """Ours: parameters and case do not matter."""
    assert is_event_stream(kind) is expected


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_a_begun_stream_ends_with_a_whole_event(end: str, size: int) -> None:
    """Ours: whatever the lines end with and however the bytes come in."""
    whole = f"data: 1{end}{end}event: x{end}data: 2{end}{end}".encode()
    raw = whole + b"data: 4"
    events = EventStreamReader(1000)
    for start in range(0, len(raw), size):
        events.feed(raw[start : start + size])

    assert events.begun() == whole
    assert events.whole() == raw
    assert not events.is_full
    assert events.describe(20.0) == "the stream of events did not end within 20 seconds; 2 complete events arrived"


def test_one_event_without_end_is_kept_as_far_as_it_came() -> None:
    """Ours: where there is no whole event, its beginning is better than nothing."""
    events = EventStreamReader(10)
    assert not events.has_begun
    events.feed(b"data: 123")
    assert (events.has_begun, events.begun()) == (True, b"data: 123")
    events.feed(b"456789")

    assert events.is_full
    assert events.begun() == b"data: 1234"
    assert events.describe(1.0) == "the stream of events is cut after 10 bytes"


def test_events_are_counted_and_bounded() -> None:
    """Ours: so many small ones are enough (TEN-5)."""
    events = EventStreamReader(10**9)
    events.feed(b"d: 1\n\n" * (MAX_EVENTS + 5))

    assert events.is_full
    assert events.begun() == b"d: 1\n\n" * MAX_EVENTS
    assert events.describe(1.0) == "the stream of events is cut after 10,000 events"
