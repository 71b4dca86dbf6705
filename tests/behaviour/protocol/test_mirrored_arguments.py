"""Arguments that clients repeat in `Mcp-Param-*` headers: both must be equal, or nothing is called."""

import pytest

from tests.behaviour.protocol.conftest import Acme
from tests.support.gateway import META, MODERN
from tests.support.primitives import tool

REGION = {
    "type": "object",
    "properties": {"region": {"type": "string", "x-mcp-header": "Region"}, "n": {"type": "integer"}},
}
"""The input schema of a tool that mirrors one of its arguments."""


@pytest.fixture
async def mirroring(own_acme: Acme) -> Acme:
    """The tenant with such a tool."""
    body = tool("mirror", {"kind": "template", "text": "in {{ region }}"}, schema=REGION)
    (await own_acme.gateway.admin.post("/tenants/acme/tools", json=body)).raise_for_status()
    return own_acme


_EQUAL: tuple[tuple[dict[str, object], dict[str, str], str], ...] = (
    ({"region": "eu"}, {"mcp_param_region": "eu"}, "in eu"),
    ({"region": "Ünï"}, {"mcp_param_region": "=?base64?w5xuw68=?="}, "in Ünï"),
    ({"region": "eu", "n": 1}, {"mcp_param_region": "eu", "mcp_param_other": "1"}, "in eu"),
    ({"n": 1}, {}, "in "),
    ({}, {}, "in "),
)


async def test_equal_headers_and_arguments_are_called(mirroring: Acme) -> None:
    """MCP: an argument is mirrored once, as it is or encoded; what is not there is mirrored nowhere (SRV-1)."""
    for arguments, headers, text in _EQUAL:
        params = {"name": "mirror", "arguments": arguments}

        answer = await mirroring.gateway.rpc("acme", mirroring.key, "tools/call", params, **headers)

        assert answer.status_code == 200, answer.text
        assert answer.json()["result"]["content"] == [{"type": "text", "text": text}]


_DIFFERENT: tuple[tuple[dict[str, object] | None, list[tuple[str, str]]], ...] = (
    ({"region": "eu"}, []),
    ({"region": "eu"}, [("mcp-param-region", "us")]),
    ({"region": "eu"}, [("mcp-param-region", "eu"), ("mcp-param-region", "us")]),
    ({}, [("mcp-param-region", "eu")]),
    (None, [("mcp-param-region", "eu")]),
    ({"region": 5}, [("mcp-param-region", "eu")]),
)


@pytest.mark.parametrize("accept", ["application/json", "application/json, text/event-stream"])
async def test_headers_that_differ_are_refused(mirroring: Acme, accept: str) -> None:
    """MCP: proxies may act on the headers, so they are compared with the body first (SRV-1, TEN-5)."""
    sent = {"authorization": f"Bearer {mirroring.key}", "accept": accept, "mcp-method": "tools/call"}
    for arguments, headers in _DIFFERENT:
        params = {"name": "mirror", "arguments": arguments, "_meta": META}
        named = [*sent.items(), ("mcp-protocol-version", MODERN), ("mcp-name", "mirror"), *headers]
        body = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}

        answer = await mirroring.gateway.http.post("/t/acme/mcp", json=body, headers=named)

        error = answer.json()["error"]
        assert (answer.status_code, error["code"], answer.json()["id"]) == (400, -32020, 7)
        assert error["message"].startswith("Mcp-Param-Region header ")
        assert error["data"]["code"] == "input.invalid"
        assert error["data"]["correlation_id"] == answer.headers["x-request-id"]


async def test_bytes_that_are_no_characters_are_refused(mirroring: Acme) -> None:
    """MCP: a recognized header with invalid characters is refused, also if Latin-1 would read the argument (SRV-1)."""
    named = {"authorization": f"Bearer {mirroring.key}", "accept": "application/json", "mcp-method": "tools/call"}
    named |= {"mcp-protocol-version": MODERN, "mcp-name": "mirror"}
    headers = [(name.encode(), value.encode()) for name, value in named.items()]
    params = {"name": "mirror", "arguments": {"region": "é"}, "_meta": META}
    body = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}

    for value in (b"\xe9", "é".encode()):
        odd = [*headers, (b"mcp-param-region", value)]
        refused = await mirroring.gateway.http.post("/t/acme/mcp", json=body, headers=odd)

        assert (refused.status_code, refused.json()["error"]["code"]) == (400, -32020)
        assert refused.json()["error"]["message"] == "Mcp-Param-Region header contains invalid characters"


@pytest.mark.parametrize("odd", [{}, {"io.modelcontextprotocol/odd": 1}])
async def test_routing_members_occur_once(mirroring: Acme, odd: dict[str, int]) -> None:
    """MCP: a reader of the first and a reader of the last of two would choose different values (SRV-1, TEN-5)."""
    reported = {"mcp-protocol-version": MODERN, "mcp-method": "tools/call", "mcp-name": "get_pet"}
    headers = [("authorization", f"Bearer {mirroring.key}"), ("accept", "application/json"), *reported.items()]
    params = {"name": "get_pet", "arguments": {"id": 7}, "_meta": {**META, **odd}}
    body = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}
    for name, value in reported.items():
        answer = await mirroring.gateway.http.post("/t/acme/mcp", json=body, headers=[*headers, (name, value)])

        error = answer.json()["error"]
        assert (answer.status_code, error["code"]) == (400, -32020)
        assert error["message"] == f"{name} header appears more than once"
    assert mirroring.upstream.seen == []


async def test_an_empty_name_is_mirrored_by_an_empty_header(acme: Acme) -> None:
    """MCP: the header equals the body, so an unknown tool is no mismatch (SRV-1)."""
    for odd in ({}, {"_meta": {"io.modelcontextprotocol/odd": 1}}):
        answer = await acme.gateway.rpc("acme", acme.key, "tools/call", {"name": "", "arguments": {}, **odd})

        assert (answer.json()["error"]["code"], answer.json()["error"]["message"]) == (-32602, "Tool not found: ")


async def test_without_an_accept_header_everything_is_answered(mirroring: Acme) -> None:
    """HTTP: a client that names no media type takes any, also of what may talk (RFC 9110 12.5.1; SRV-1)."""
    steps = {"kind": "steps", "steps": [{"log": {"data": "said"}}, {"return": {"text": "done"}}]}
    for name, handler in (("quiet", {"kind": "template", "text": "done"}), ("telling", steps)):
        stored = await mirroring.gateway.admin.post("/tenants/acme/tools", json=tool(name, handler))
        assert stored.status_code == 201, stored.text
        params = {"name": name, "_meta": {**META, "io.modelcontextprotocol/odd": 1}}
        request = mirroring.gateway.http.build_request(
            "POST",
            "/t/acme/mcp",
            json={"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params},
            headers={
                "authorization": f"Bearer {mirroring.key}",
                "mcp-protocol-version": MODERN,
                "mcp-method": "tools/call",
                "mcp-name": name,
            },
        )
        del request.headers["accept"]

        answer = await mirroring.gateway.http.send(request)

        assert answer.status_code == 200, answer.text
        assert '"text":"done"' in answer.text
