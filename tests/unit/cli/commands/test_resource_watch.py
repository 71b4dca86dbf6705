"""Reading and closing of a subscription."""

import json
from collections.abc import Callable

import httpx
import pytest

from gateway.cli.commands.updates.resource_watch import ResourceWatcher
from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure

_URL = "http://127.0.0.1:8080/t/acme/mcp"
_URI = "note://1"
_STREAM = {"Content-Type": "text/event-stream; charset=utf-8"}


def _first(answer: Callable[[httpx.Request], httpx.Response]) -> str:
    """The first update that is followed through this answer."""
    with httpx.Client(transport=httpx.MockTransport(answer)) as http:
        return next(ResourceWatcher(http, _URL, (_URI,), report=lambda _: None).updates())


def _event(method: str, params: dict[str, object]) -> str:
    return f"data: {json.dumps({'jsonrpc': '2.0', 'method': method, 'params': params})}\n\n"


def test_a_program_that_is_no_mcp_server_is_called_once() -> None:
    """Ours: a page of another program ends in one line; it is not listened to again and again (CLI-1)."""
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(200, html="<h1>hello</h1>")

    with pytest.raises(Failure, match="did not respond as an MCP server"):
        _first(answer)
    assert len(asked) == 1


def test_a_stream_that_ends_before_it_began_is_an_error() -> None:
    """Ours: no subscription begins before the gateway has acknowledged it (CLI-1)."""
    with pytest.raises(Failure, match="closed the stream"):
        _first(lambda _: httpx.Response(200, text=": hello\n\n", headers=_STREAM))


def test_a_lost_stream_is_opened_again() -> None:
    """Ours: a replica that goes away ends no `resource watch` (RES-4)."""
    granted = _event("notifications/subscriptions/acknowledged", {"notifications": {"resourceSubscriptions": [_URI]}})
    streams = iter([granted, granted + _event("notifications/resources/updated", {"uri": _URI})])

    assert _first(lambda _: httpx.Response(200, text=next(streams), headers=_STREAM)) == _URI


def test_a_resource_that_is_not_granted_is_not_there() -> None:
    """Ours: the exit code of what does not exist (CLI-1)."""
    granted = _event("notifications/subscriptions/acknowledged", {"notifications": {"resourceSubscriptions": []}})

    with pytest.raises(Failure, match="cannot read a resource") as refused:
        _first(lambda _: httpx.Response(200, text=granted, headers=_STREAM))
    assert refused.value.exit_code is ExitCode.NOT_FOUND
