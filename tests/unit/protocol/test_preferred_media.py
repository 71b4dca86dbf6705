"""Media types that a client takes, and its preference between two."""

import pytest
from starlette.types import Message

from gateway.protocol.http.request import McpRequest

STREAM, JSON = "text/event-stream", "application/json"


async def _receive() -> Message:
    return {}


async def _send(message: Message) -> None:
    del message


def _request(*headers: tuple[bytes, bytes]) -> McpRequest:
    scope = {"type": "http", "method": "POST", "path": "/", "query_string": b"", "headers": list(headers)}
    return McpRequest.read(scope, _receive, _send)


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
def test_weight_counts_first_and_then_the_order(accept: str, expected: bool) -> None:
    """RFC 9110 §12.5.1: a client states its preference by weight; ours: of equals the first one wins."""
    assert _request((b"accept", accept.encode())).prefers(STREAM, to=JSON) is expected


def test_without_an_accept_header_nothing_is_preferred() -> None:
    """RFC 9110 §12.5.1: without an Accept header anything will do."""
    assert not _request().prefers(STREAM, to=JSON)


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("application/json, text/event-stream", True),
        ("*/*", True),
        ("application/*", True),
        ("text/*", False),
        ("", False),
        ("application/json;q=0, text/event-stream", False),
        ("application/json;q=0.0, */*", False),
        ("application/*;q=0, application/json", True),
        ("*/*;q=0", False),
        ("*/*;q=0.1", True),
        ("application/json;q=high", True),
    ],
)
def test_a_weight_of_nothing_is_a_refusal(accept: str, expected: bool) -> None:
    """RFC 9110 §12.5.1: the most exact name counts, and a weight of 0 means that it is not taken."""
    assert _request((b"accept", accept.encode())).accepts(JSON) is expected
