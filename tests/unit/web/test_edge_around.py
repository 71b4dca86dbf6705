"""Behaviour of the edge for its environment: balancers, proxies, and metrics."""

import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.testing import capture_logs

from gateway.telemetry.metrics import Metrics
from gateway.web.edge import Edge, EdgeDependencies
from gateway.web.proxies import Proxies

Headers = tuple[tuple[bytes, bytes], ...]


def _answering(status: int, *headers: tuple[bytes, bytes]) -> ASGIApp:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": status, "headers": list(headers)})
        await send({"type": "http.response.body", "body": b""})

    return app


async def _ask(
    app: ASGIApp, around: EdgeDependencies, *headers: tuple[bytes, bytes], peer: str = "10.0.0.1"
) -> Headers:
    """The headers of the answer to one request."""
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "GET",
        "path": "/t/acme/mcp",
        "raw_path": b"/t/acme/mcp",
        "query_string": b"",
        "headers": [(b"host", b"gw"), *headers],
        "client": (peer, 4711),
    }
    await Edge(app, hosts=["gw"], around=around)(scope, receive, send)
    return tuple(sent[0]["headers"])


@pytest.mark.parametrize("is_draining", [True, False])
async def test_connections_are_not_kept_while_the_end_is_near(is_draining: bool) -> None:
    """Ours: a proxy opens its next connection to a replica that stays (SRV-3)."""
    headers = await _ask(_answering(200), EdgeDependencies(is_draining=lambda: is_draining))

    assert ((b"connection", b"close") in headers) is is_draining


async def test_an_answer_closes_only_once() -> None:
    """RFC 9110: headers of the application are not repeated."""
    around = EdgeDependencies(is_draining=lambda: True)

    headers = await _ask(_answering(200, (b"connection", b"close")), around)

    assert headers.count((b"connection", b"close")) == 1


async def test_answers_are_counted_also_those_of_the_edge_itself() -> None:
    """Ours: a refusal at the door is an answer, too."""
    around = EdgeDependencies(metrics=Metrics())

    await _ask(_answering(200), around)
    await _ask(_answering(200), around, (b"host", b"gw"))

    assert around.metrics.http_responses.value("200") == 1
    assert around.metrics.http_responses.value("400") == 1
    assert around.metrics.requests.now == 0


async def test_a_stream_is_counted_until_it_ends_however_it_ends() -> None:
    """Ours: no stream that broke is counted as open for ever."""
    metrics = Metrics()
    seen: list[tuple[int, int]] = []

    async def broken(scope: Scope, receive: Receive, send: Send) -> None:
        start = {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]}
        await send(start)
        seen.append((metrics.streams.now, metrics.requests.now))
        raise RuntimeError

    with capture_logs(), pytest.raises(RuntimeError):
        await _ask(broken, EdgeDependencies(metrics=metrics))

    assert seen == [(1, 1)]
    assert (metrics.streams.now, metrics.requests.now) == (0, 0)


async def test_a_refused_credential_is_logged_with_the_address_it_came_from() -> None:
    """Ours: an attacker that tries keys can be found, and cannot name another address (TEN-5)."""
    around = EdgeDependencies(proxies=Proxies(["10.0.0.0/8"]))
    forwarded = (b"x-forwarded-for", b"1.1.1.1, 198.51.100.7")

    with capture_logs() as lines:
        await _ask(_answering(401), around, forwarded)
        await _ask(_answering(401), around, forwarded, peer="203.0.113.4")
        await _ask(_answering(401), EdgeDependencies(), forwarded)

    refused = [line for line in lines if line["event"] == "credential_refused"]
    assert [line["client"] for line in refused] == ["198.51.100.7", "203.0.113.4", "10.0.0.1"]
    assert {line["path"] for line in refused} == {"/t/acme/mcp"}
