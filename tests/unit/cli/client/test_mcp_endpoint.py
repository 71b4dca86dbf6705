"""MCP 2026-07-28 of `gateway call`."""

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from gateway.cli.client.mcp_endpoint import McpClient, mirrored_headers
from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.domain.http.mcp_requests import header_value

_URL = "http://127.0.0.1:8080/t/acme/mcp"
_TOOL: dict[str, object] = {"name": "add", "inputSchema": {"type": "object"}}


def _endpoint(answer: Callable[[httpx.Request], httpx.Response]) -> McpClient:
    return McpClient(_URL, "secret", transport=httpx.MockTransport(answer))


def _result(value: dict[str, object]) -> httpx.Response:
    return httpx.Response(200, json={"jsonrpc": "2.0", "id": 1, "result": value})


def test_a_tool_is_found_on_every_page() -> None:
    """MCP: a list ends where no cursor follows, and the empty string is a cursor."""
    pages: dict[object, dict[str, object]] = {
        None: {"tools": [{"name": "a"}], "nextCursor": ""},
        "": {"tools": [{"name": "b"}]},
    }
    unknown = {"code": -32602, "message": "Tool not found", "data": {"code": "not_found"}}

    def answer(request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        if body["method"] == "tools/list":
            return _result(pages[body["params"].get("cursor")])
        return httpx.Response(400, json={"jsonrpc": "2.0", "id": 1, "error": unknown})

    with _endpoint(answer) as endpoint:
        assert endpoint.find("b") == {"name": "b"}
        with pytest.raises(Failure, match="no tool 'c'") as caught:
            endpoint.call(endpoint.find("c"), {})
        with pytest.raises(Failure, match="did you mean 'b'"):
            endpoint.call(endpoint.find("bb"), {})
    assert caught.value.exit_code is ExitCode.NOT_FOUND


def test_a_call_repeats_method_and_name_in_headers() -> None:
    """MCP 2026-07-28: the headers equal the body."""
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return _result({"resultType": "complete", "content": []})

    with _endpoint(answer) as endpoint:
        endpoint.call(_TOOL, {"x": 1})
    body = json.loads(seen[0].content)
    assert seen[0].headers["Mcp-Method"] == body["method"] == "tools/call"
    assert seen[0].headers["Mcp-Name"] == body["params"]["name"] == "add"
    assert body["params"]["arguments"] == {"x": 1}


def test_a_result_in_an_event_stream_is_read_past_its_notifications() -> None:
    """MCP: an answer may come as a stream whose last message is the response."""
    events = (
        ": hello\n\n"
        'event: message\ndata: {"jsonrpc":"2.0","method":"notifications/message","params":{}}\n\n'
        'event: message\r\ndata: {"jsonrpc":"2.0","id":1,\r\ndata: "result":{"content":[]}}\r\n\r\n'
    )
    headers = {"Content-Type": "text/event-stream"}

    with _endpoint(lambda _: httpx.Response(200, text=events, headers=headers)) as endpoint:
        assert endpoint.call(_TOOL, {}) == {"content": []}


def test_a_call_with_a_form_is_refused_without_a_terminal() -> None:
    """Ours: without a terminal this command cannot answer, on one it answers forms, and never without end."""
    asked: dict[str, object] = {
        "resultType": "input_required",
        "requestState": "s",
        "inputRequests": {"q": {"method": "elicitation/create", "params": {"message": "?"}}},
    }
    sampled = {**asked, "inputRequests": {"q": {"method": "sampling/createMessage"}}}
    seen: list[dict[str, Any]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(json.loads(request.content)["params"])
        return _result(asked if seen[-1]["name"] == "add" else sampled)

    with _endpoint(answer) as endpoint, pytest.raises(Failure, match="further input"):
        endpoint.call(_TOOL, {})
    transport = httpx.MockTransport(answer)
    with McpClient(_URL, "secret", ask=lambda _: {"action": "decline"}, transport=transport) as endpoint:
        with pytest.raises(Failure, match="again and again"):
            endpoint.call(_TOOL, {"x": 1})
        with pytest.raises(Failure, match="further input"):
            endpoint.call({"name": "sampler"}, {})

    capabilities = [each["_meta"]["io.modelcontextprotocol/clientCapabilities"] for each in seen[:2]]
    assert capabilities == [{}, {"elicitation": {"form": {}}}]
    assert (seen[2]["inputResponses"], seen[2]["requestState"]) == ({"q": {"action": "decline"}}, "s")
    assert (seen[2]["name"], seen[2]["arguments"]) == ("add", {"x": 1})


@pytest.mark.parametrize(
    ("status", "body", "code", "message"),
    [
        (400, {"error": {"code": -32602, "message": "no"}}, ExitCode.FAILED, "no"),
        (
            200,
            {"error": {"code": 42900, "message": "slow", "data": {"retry_after_s": 2}}},
            ExitCode.BUSY,
            "retry in 2 s",
        ),
        (401, {"detail": "who are you"}, ExitCode.DENIED, "who are you"),
        (404, {}, ExitCode.NOT_FOUND, "HTTP 404"),
        (404, {"error": {"message": "not found"}}, ExitCode.NOT_FOUND, "not found: no such tenant"),
        (200, {"hello": 1}, ExitCode.FAILED, "did not respond as an MCP server"),
    ],
)
def test_each_refusal_has_its_exit_code(status: int, body: dict[str, object], code: ExitCode, message: str) -> None:
    """Ours: protocol errors and HTTP refusals end in one line and the documented code."""
    with _endpoint(lambda _: httpx.Response(status, json=body)) as endpoint, pytest.raises(Failure) as caught:
        endpoint.call(_TOOL, {})
    assert caught.value.exit_code == code
    assert message in caught.value.message


def test_header_values_that_could_be_misread_are_wrapped() -> None:
    """MCP 2026-07-28: non-ASCII, padded and sentinel-like values travel in base64."""
    assert header_value("plain name") == "plain name"
    assert header_value("größe") == "=?base64?Z3LDtsOfZQ==?="
    assert header_value(" padded").startswith("=?base64?")
    assert header_value("=?base64?eA==?=").startswith("=?base64?PT9")


def test_marked_arguments_are_mirrored_into_headers() -> None:
    """MCP 2026-07-28: a client mirrors every argument whose property carries `x-mcp-header`."""
    schema: dict[str, object] = {
        "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "dry": {"type": "boolean", "x-mcp-header": "Dry"},
            "inner": {"properties": {"n": {"type": "integer", "x-mcp-header": "N"}}},
            "absent": {"type": "string", "x-mcp-header": "Absent"},
            "plain": {"type": "string"},
        }
    }
    arguments: dict[str, object] = {"region": "eu", "dry": True, "inner": {"n": 5}, "plain": "x", "absent": None}

    assert mirrored_headers(schema, arguments) == {
        "Mcp-Param-Region": "eu",
        "Mcp-Param-Dry": "true",
        "Mcp-Param-N": "5",
    }
