"""Additions of the first layer to every request and answer."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.testing import capture_logs

from gateway.telemetry.log_context import add_labels
from gateway.web.edge import Edge, EdgeLimits

Headers = list[tuple[bytes, bytes]]


async def _hello(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


async def _ask(
    app: ASGIApp,
    *headers: tuple[bytes, bytes],
    limits: EdgeLimits | None = None,
    receive: Callable[[], Awaitable[Message]] | None = None,
) -> tuple[Message, bytes]:
    """One request with a good Host through the edge: the start of the answer and its body."""
    sent: list[Message] = []

    async def nothing() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/t/acme/mcp",
        "raw_path": b"/t/acme/mcp",
        "query_string": b"",
        "headers": [(b"host", b"gw"), *headers],
    }
    await Edge(app, hosts=["gw"], limits=limits)(scope, receive or nothing, send)
    starts = [message for message in sent if message["type"] == "http.response.start"]
    assert len(starts) == 1
    return starts[0], b"".join(message.get("body", b"") for message in sent)


def _header(start: Message, name: bytes) -> bytes | None:
    values = [value for key, value in start["headers"] if key == name]
    assert len(values) < 2
    return values[0] if values else None


async def test_a_header_that_is_too_large_is_refused_with_the_limit() -> None:
    """Ours: a client that sends too many cookies reads the limit."""
    start, body = await _ask(_hello, (b"cookie", b"s=" + b"a" * 17_000), limits=EdgeLimits(cookie_bytes=8192))

    assert start["status"] == 431
    assert "8192 bytes of cookies" in json.loads(body)["detail"]


async def test_every_answer_carries_a_correlation_id() -> None:
    """Ours: one is made for a request that has none, and is the same in scope and answer."""
    seen: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope["correlation_id"])
        await _hello(scope, receive, send)

    first, _ = await _ask(app)
    await _ask(app)

    assert _header(first, b"x-request-id") == seen[0].encode()
    assert len(seen[0]) == 24
    assert seen[0] != seen[1]


async def test_a_sane_request_id_is_taken_over() -> None:
    """Ours: the caller's own id finds its request in our log."""
    start, _ = await _ask(_hello, (b"x-request-id", b"4bf92f35-77b3.4da6_a3ce"))

    assert _header(start, b"x-request-id") == b"4bf92f35-77b3.4da6_a3ce"


@pytest.mark.parametrize(
    "named", [b"", b"short", b"a" * 65, b"a b c d e f", b'"quoted-id"', b"\xc3\xa9" * 8, b"line\nline", b"12345678\n"]
)
async def test_an_odd_request_id_is_replaced(named: bytes) -> None:
    """Ours: values in logs and headers are short and plain."""
    start, _ = await _ask(_hello, (b"x-request-id", named))

    assert _header(start, b"x-request-id") != named


async def test_security_headers_are_added() -> None:
    """Ours: no sniffing, and no caching unless the application sets it."""
    start, body = await _ask(_hello)

    assert body == b"ok"
    assert _header(start, b"x-content-type-options") == b"nosniff"
    assert _header(start, b"cache-control") == b"no-store"
    assert _header(start, b"content-length") == b"2"


async def test_the_applications_own_caching_stays() -> None:
    """Ours: a default is no override."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        headers: Headers = [(b"cache-control", b"max-age=60"), (b"x-request-id", b"of-the-application")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body"})

    start, _ = await _ask(app, (b"x-request-id", b"of-the-caller"))

    assert _header(start, b"cache-control") == b"max-age=60"
    assert _header(start, b"x-request-id") == b"of-the-caller"


async def test_log_context_is_bound_and_cleared() -> None:
    """Ours: lines of one request carry its id; nothing of it is left for the next."""
    inside: list[dict[str, Any]] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        inside.append(dict(add_labels(None, "", {"event": "seen", "tenant": "said by the line"})))
        await _hello(scope, receive, send)

    await _ask(app, (b"x-request-id", b"request-1"))

    assert inside == [{"event": "seen", "correlation_id": "request-1", "tenant": "said by the line"}]
    assert add_labels(None, "", {"event": "later"}) == {"event": "later"}


async def test_an_unforeseen_error_is_a_problem_without_details() -> None:
    """Ours: the caller gets an id, the log gets the error."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        raise RuntimeError("postgresql://gateway:hunter2@db")

    with capture_logs() as lines:
        start, body = await _ask(app, (b"x-request-id", b"request-1"))

    assert start["status"] == 500
    assert json.loads(body)["correlation_id"] == "request-1"
    assert b"hunter2" not in body
    assert [line["event"] for line in lines] == ["request_failed"]


async def test_an_error_in_the_middle_of_an_answer_breaks_the_connection() -> None:
    """ASGI: half an answer must not look like a whole one, so the server gets the error."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"half", "more_body": True})
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError), capture_logs():
        await _ask(app)


async def test_a_client_that_left_is_no_error() -> None:
    """Ours: a closed laptop causes no alert."""
    sent: list[Message] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        raise ClientDisconnect

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    scope = {"type": "http", "path": "/x", "query_string": b"", "headers": [(b"host", b"gw")]}
    with capture_logs() as lines:
        await Edge(app, hosts=["gw"])(scope, receive, send)

    assert not sent
    assert all(line["log_level"] == "debug" for line in lines)


async def test_a_slow_body_is_answered_by_the_edge() -> None:
    """Ours: 408 at once, whatever the application makes of it; its own late answer goes nowhere."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        await _hello(scope, receive, send)

    async def trickle() -> Message:
        await anyio.sleep(0.01)
        return {"type": "http.request", "body": b"x", "more_body": True}

    limits = EdgeLimits(body_s=0.05, body_grace_s=0.05)
    with anyio.fail_after(30), capture_logs():
        start, body = await _ask(app, (b"content-length", b"1000"), limits=limits, receive=trickle)

    assert start["status"] == 408
    assert _header(start, b"connection") == b"close"
    assert json.loads(body)["code"] == "http.body_too_slow"


async def test_other_protocols_do_not_get_through() -> None:
    """Ours: a WebSocket is closed before anything sees it; the lifespan passes."""
    seen: list[str] = []
    sent: list[Message] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope["type"])

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {}

    edge = Edge(app, hosts=["gw"])
    await edge({"type": "lifespan"}, receive, send)
    await edge({"type": "websocket", "path": "/", "headers": []}, receive, send)

    assert seen == ["lifespan"]
    assert sent == [{"type": "websocket.close", "code": 1008}]
