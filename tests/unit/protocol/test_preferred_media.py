"""Which of two media types a client would rather have."""

import pytest

from gateway.protocol.wire import prefers

STREAM, JSON = "text/event-stream", "application/json"


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("application/json, text/event-stream", False),
        ("text/event-stream, application/json", True),
        ("text/event-stream", True),
        ("application/json", False),
        ("application/json;q=0.5, text/event-stream", True),
        ("text/event-stream; q=0.9, application/json", False),
        ("TEXT/Event-Stream, application/json", True),
        ("text/event-stream;q=high, application/json", True),
        ("*/*", False),
        ("", False),
        (",,;q=1", False),
    ],
)
def test_weight_counts_first_and_then_what_is_named_first(accept: str, expected: bool) -> None:
    """RFC 9110 §12.5.1: a client says by weight what it prefers; ours: of equals the one that it names first."""
    scope = {"type": "http", "headers": [(b"accept", accept.encode())]}

    assert prefers(scope, STREAM, to=JSON) is expected


def test_without_a_wish_nothing_is_preferred() -> None:
    """RFC 9110 §12.5.1: without an Accept header anything will do."""
    assert not prefers({"type": "http", "headers": []}, STREAM, to=JSON)
