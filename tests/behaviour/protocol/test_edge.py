"""Refusals before a method runs: credentials, tenants, headers, bodies."""

import json
from typing import Any

import httpx
import pytest

from tests.behaviour.protocol.conftest import Acme
from tests.support.gateway import ACCEPT, META, MODERN

LIST: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": META}}
VERBS = ("GET", "POST", "DELETE")


@pytest.fixture
def acme(common_acme: Acme) -> Acme:
    """One for all: next to nothing here gets as far as to a method."""
    return common_acme


def _headers(key: str, **more: str) -> dict[str, str]:
    sent = {
        "authorization": f"Bearer {key}",
        "accept": ACCEPT,
        "content-type": "application/json",
        "mcp-protocol-version": MODERN,
        "mcp-method": "tools/list",
    }
    return {**sent, **{name.replace("_", "-"): value for name, value in more.items()}}


async def _post(acme: Acme, content: bytes, **more: str) -> httpx.Response:
    return await acme.gateway.http.post("/t/acme/mcp", content=content, headers=_headers(acme.key, **more))


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("slug", ["acme", "nobody"])
@pytest.mark.parametrize("credential", [None, "Bearer nonsense", "Basic YTpi", "Bearer", "Bearer a b"])
async def test_without_a_good_credential_all_tenants_look_alike(
    acme: Acme, verb: str, slug: str, credential: str | None
) -> None:
    """Ours: 401, the same for a tenant that exists and one that does not (TEN-1, TEN-2)."""
    headers = {} if credential is None else {"authorization": credential}
    answer = await acme.gateway.http.request(verb, f"/t/{slug}/mcp", headers=headers)

    assert answer.status_code == 401
    is_bearer = credential is not None and credential.startswith("Bearer ")
    assert answer.headers["www-authenticate"] == ('Bearer error="invalid_token"' if is_bearer else "Bearer")
    assert "`Authorization: Bearer KEY`" in answer.json()["error"]["message"]
    assert answer.json()["error"]["data"]["code"] == "auth.unauthenticated"


@pytest.mark.parametrize("verb", VERBS)
async def test_a_foreign_tenant_and_a_missing_one_look_alike(acme: Acme, verb: str) -> None:
    """Ours: a good key at another tenant's URL learns nothing (TEN-1, TEN-5)."""
    foreign = f"globex-{verb.lower()}"
    await acme.gateway.create_tenant(foreign)

    answers = [
        await acme.gateway.http.request(verb, f"/t/{slug}/{tail}", headers=_headers(acme.key), json=LIST)
        for slug, tail in ((foreign, "mcp"), ("nobody", "mcp"), ("acme", "no-such-profile/mcp"))
    ]

    assert {answer.status_code for answer in answers} == {404}
    bodies = [answer.json()["error"] | {"data": None} for answer in answers]
    assert bodies[0] == bodies[1] == bodies[2]


async def test_the_default_profile_has_a_url_of_its_own(acme: Acme) -> None:
    """Ours: /t/{tenant}/default/mcp is the tenant's URL spelt out (SRV-1)."""
    answer = await acme.gateway.http.post("/t/acme/default/mcp", json=LIST, headers=_headers(acme.key))

    assert len(answer.json()["result"]["tools"]) == 4


async def test_a_key_without_the_scope_is_forbidden(acme: Acme) -> None:
    """Ours: an admin key is no client (TEN-2)."""
    admin = await acme.gateway.create_key("acme", "admin")

    answer = await acme.gateway.http.post("/t/acme/mcp", json=LIST, headers=_headers(admin))

    assert (answer.status_code, answer.json()["error"]["code"]) == (403, 40300)


async def test_the_operator_key_is_no_client_of_a_tenant(acme: Acme) -> None:
    """Ours: the operator owns no tenant, so no tenant's URL is its (TEN-1)."""
    operator = acme.gateway.admin.headers["authorization"].removeprefix("Bearer ")

    answer = await acme.gateway.http.post("/t/acme/mcp", json=LIST, headers=_headers(operator))

    assert answer.status_code == 404


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", -32700),
        (b"{", -32700),
        (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":NaN}}', -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + b"[" * 100 + b"]" * 100 + b"}", -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', -32700),
        (b"[]", -32600),
        (b"[" + json.dumps(LIST).encode() + b"]", -32600),
        (b'"text"', -32600),
        (b"null", -32600),
        (b'{"jsonrpc":"1.0","id":1,"method":"tools/list"}', -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"tools/list"}', -32600),
    ],
)
@pytest.mark.parametrize("version", [MODERN, "2025-11-25"])
async def test_malformed_messages_are_errors_of_the_protocol(
    acme: Acme, content: bytes, code: int, version: str
) -> None:
    """MCP: malformed JSON, malformed JSON-RPC and batches, in every era; the gateway goes on (CAL-5)."""
    answer = await _post(acme, content, mcp_protocol_version=version)

    assert (answer.status_code, answer.json()["error"]["code"]) == (400, code)
    assert (await _post(acme, json.dumps(LIST).encode())).status_code == 200


async def test_an_oversized_body_is_refused(acme: Acme) -> None:
    """Ours: a message has at most 1 MiB (CAL-5)."""
    answer = await _post(acme, b" " * (1024 * 1024 + 1))

    assert answer.status_code == 413


async def test_another_content_type_is_refused(acme: Acme) -> None:
    """MCP: messages are application/json (CAL-5)."""
    assert (await _post(acme, json.dumps(LIST).encode(), content_type="text/plain")).status_code == 415


async def test_a_client_that_takes_no_json_is_refused(acme: Acme) -> None:
    """MCP: an Accept header without application/json is 406 (CAL-5)."""
    assert (await _post(acme, json.dumps(LIST).encode(), accept="text/html")).status_code == 406


@pytest.mark.parametrize("verb", VERBS)
async def test_a_foreign_origin_is_refused(acme: Acme, verb: str) -> None:
    """MCP: an Origin that is not allowed is 403 on every verb (CAL-5, TEN-5)."""
    headers = _headers(acme.key, origin="https://evil.example.com")

    assert (await acme.gateway.http.request(verb, "/t/acme/mcp", headers=headers)).status_code == 403


@pytest.mark.parametrize("verb", VERBS)
async def test_a_foreign_host_is_refused(acme: Acme, verb: str) -> None:
    """Ours: DNS rebinding ends at the Host header (CAL-5, TEN-5)."""
    headers = _headers(acme.key, host="evil.example.com")

    assert (await acme.gateway.http.request(verb, "/t/acme/mcp", headers=headers)).status_code == 421


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"mcp_method": "tools/call"}, -32020),
        ({"mcp_method": ""}, -32020),
        ({"mcp_protocol_version": "2099-01-01"}, -32020),
    ],
)
async def test_headers_that_contradict_the_body_are_refused(acme: Acme, headers: dict[str, str], code: int) -> None:
    """MCP: 2026-07-28 mirrors version and method in headers (SRV-1)."""
    answer = await _post(acme, json.dumps(LIST).encode(), **headers)

    assert (answer.status_code, answer.json()["error"]["code"]) == (400, code)


async def test_a_modern_body_without_its_version_header_is_a_mismatch(acme: Acme) -> None:
    """MCP: the version header is required in 2026-07-28 (SRV-1)."""
    headers = _headers(acme.key)
    del headers["mcp-protocol-version"]

    answer = await acme.gateway.http.post("/t/acme/mcp", json=LIST, headers=headers)

    assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32020)


async def test_an_unsupported_version_gets_the_supported_ones(acme: Acme) -> None:
    """MCP: -32022 names the supported versions (SRV-1)."""
    version = "2099-01-01"
    body: dict[str, Any] = {**LIST, "params": {"_meta": {**META, "io.modelcontextprotocol/protocolVersion": version}}}

    answer = await _post(acme, json.dumps(body).encode(), mcp_protocol_version=version)

    assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32022)
    assert answer.json()["error"]["data"]["supported"] == [MODERN]


@pytest.mark.parametrize("method", ["no/such", "resources/list", "prompts/list", "ping", "logging/setLevel"])
async def test_a_method_that_is_not_served_does_not_exist(acme: Acme, method: str) -> None:
    """MCP: -32601 with HTTP 404 in 2026-07-28 (CAP-1)."""
    answer = await acme.gateway.rpc("acme", acme.key, method)

    assert (answer.status_code, answer.json()["error"]["code"]) == (404, -32601)


@pytest.mark.parametrize("cursor", ["x", " ", "bm90LWEtY3Vyc29y", "é", "a" * 2000])
async def test_an_invalid_cursor_is_refused(acme: Acme, cursor: str) -> None:
    """MCP: -32602 for a cursor that we did not issue (RES-3)."""
    answer = await acme.gateway.rpc("acme", acme.key, "tools/list", {"cursor": cursor})

    assert answer.json()["error"]["code"] == -32602


async def test_a_list_has_its_lifetime_and_cache_scope(acme: Acme) -> None:
    """MCP: ttlMs and cacheScope; one tenant's list is never public (SRV-1, TEN-5)."""
    result = (await acme.gateway.rpc("acme", acme.key, "tools/list")).json()["result"]

    assert (result["cacheScope"], result["resultType"]) == ("private", "complete")
    assert result["ttlMs"] >= 0


async def test_a_tool_is_listed_with_everything_a_client_needs(acme: Acme) -> None:
    """MCP: name, description, object schema and explicit annotations (OAS-4, CAP-1)."""
    tools = (await acme.gateway.rpc("acme", acme.key, "tools/list")).json()["result"]["tools"]
    delete = next(tool for tool in tools if tool["name"] == "delete_pet")

    assert delete["description"]
    assert delete["inputSchema"]["required"] == ["id"]
    assert delete["annotations"]["destructiveHint"] is True
    assert delete["annotations"]["readOnlyHint"] is False


async def test_discovery_names_the_modern_versions(acme: Acme) -> None:
    """MCP: server/discover lists the revisions of -32022 (SRV-1)."""
    result = (await acme.gateway.rpc("acme", acme.key, "server/discover")).json()["result"]

    assert result["supportedVersions"] == [MODERN]
    assert result["capabilities"] == {
        "tools": {"listChanged": True},
        "extensions": {"io.modelcontextprotocol/tasks": {}},
    }


async def test_no_session_is_minted_or_echoed_in_the_modern_era(acme: Acme) -> None:
    """MCP: 2026-07-28 has no sessions (SRV-1)."""
    answer = await _post(acme, json.dumps(LIST).encode(), mcp_session_id="x")

    assert answer.status_code == 200
    assert "mcp-session-id" not in answer.headers
