"""A tool call from a real client to a real upstream, in both eras."""

from typing import Literal

import pytest
from mcp.shared.exceptions import MCPError

from tests.behaviour.protocol.conftest import Acme
from tests.support.documents import many, secured

Mode = Literal["legacy", "auto"]
ERAS: tuple[Mode, ...] = ("legacy", "auto")


@pytest.fixture
def acme(common_acme: Acme) -> Acme:
    """One tenant for the tests that change nothing of it."""
    common_acme.upstream.reset()
    return common_acme


@pytest.mark.parametrize("mode", ERAS)
async def test_a_call_reaches_the_upstream_by_its_document(acme: Acme, mode: Mode) -> None:
    """MCP: arguments reach the operation unchanged and its answer comes back in protocol form (CAL-1, SRV-1, OAS-2)."""
    acme.upstream.body = b'{"id": 7, "name": "rex"}'
    async with acme.gateway.client("acme", acme.key, mode) as client:
        result = await client.call_tool("get_pet", {"id": 7, "verbose": True})

    [seen] = acme.upstream.seen
    assert (seen.method, seen.target, seen.body) == ("GET", "/v1/pets/7?verbose=true", b"")
    assert result.structured_content == {"id": 7, "name": "rex"}
    assert result.content[0].model_dump(exclude_none=True) == {"type": "text", "text": '{"id":7,"name":"rex"}'}
    assert result.is_error is False


@pytest.mark.parametrize("mode", ERAS)
async def test_the_sdk_client_negotiates_its_era(acme: Acme, mode: Mode) -> None:
    """MCP: one URL serves the newest revision and the handshake (SRV-1)."""
    async with acme.gateway.client("acme", acme.key, mode) as client:
        assert client.protocol_version == {"legacy": "2025-11-25", "auto": "2026-07-28"}[mode]


@pytest.mark.parametrize("mode", ERAS)
async def test_a_json_body_is_sent_as_it_was_given(acme: Acme, mode: Mode) -> None:
    """OpenAPI: the argument `body` is the request body (CAL-1)."""
    async with acme.gateway.client("acme", acme.key, mode) as client:
        await client.call_tool("create_pet", {"body": {"name": "Ünï"}})

    [seen] = acme.upstream.seen
    assert (seen.method, seen.target) == ("POST", "/v1/pets")
    assert seen.body.decode() == '{"name":"Ünï"}'
    assert seen.header("content-type") == "application/json"


async def test_null_for_an_optional_parameter_counts_as_absent(acme: Acme) -> None:
    """Ours: clients send null for what is not there; a required one stays an error (CAL-1, CAL-2)."""
    call = {"name": "get_pet", "arguments": {"id": 7, "verbose": None}}
    answer = await acme.gateway.rpc("acme", acme.key, "tools/call", call)
    missing = await acme.gateway.rpc("acme", acme.key, "tools/call", {"name": "get_pet", "arguments": {"id": None}})

    assert answer.json()["result"]["isError"] is False
    assert missing.json()["result"]["isError"] is True
    assert [seen.target for seen in acme.upstream.seen] == ["/v1/pets/7"]


@pytest.mark.parametrize("mode", ERAS)
async def test_invalid_arguments_are_an_error_result_and_nothing_is_sent(acme: Acme, mode: Mode) -> None:
    """MCP: path and reason in a result that the model can read (CAL-2)."""
    async with acme.gateway.client("acme", acme.key, mode) as client:
        result = await client.call_tool("get_pet", {"id": "seven"})

    assert result.is_error is True
    assert "/id" in result.content[0].text  # type: ignore[union-attr]  # the first block is text
    assert acme.upstream.seen == []


@pytest.mark.parametrize("mode", ERAS)
async def test_an_unknown_tool_is_a_protocol_error(acme: Acme, mode: Mode) -> None:
    """MCP: an unknown tool is -32602, not a result (CAL-3)."""
    async with acme.gateway.client("acme", acme.key, mode) as client:
        with pytest.raises(MCPError) as caught:
            await client.call_tool("no_such_tool", {})

    assert caught.value.error.code == -32602
    assert "no_such_tool" in caught.value.error.message


@pytest.mark.parametrize("mode", ERAS)
async def test_an_upstream_error_is_an_error_result(acme: Acme, mode: Mode) -> None:
    """MCP: a refusal of the upstream is readable (CAL-4)."""
    acme.upstream.status, acme.upstream.body = 404, b'{"detail":"no such pet"}'
    async with acme.gateway.client("acme", acme.key, mode) as client:
        result = await client.call_tool("get_pet", {"id": 1})

    assert result.is_error is True
    assert "404" in result.content[0].text  # type: ignore[union-attr]  # the first block is text
    assert "no such pet" in result.content[0].text  # type: ignore[union-attr]  # as above


@pytest.mark.parametrize(("mode", "kept"), [("legacy", None), ("auto", [1, 2])])
async def test_an_array_is_structured_content_where_the_revision_allows_it(
    acme: Acme, mode: Mode, kept: list[int] | None
) -> None:
    """MCP: before 2026-07-28 structured content had to be an object (CAL-1)."""
    acme.upstream.body = b"[1,2]"
    async with acme.gateway.client("acme", acme.key, mode) as client:
        result = await client.call_tool("list_pets", {})

    assert result.structured_content == kept
    assert result.content[0].text == "[1,2]"  # type: ignore[union-attr]  # the first block is text


@pytest.mark.parametrize("mode", ERAS)
async def test_all_tools_are_listed_through_pages_in_a_stable_order(own_acme: Acme, mode: Mode) -> None:
    """MCP: every tool is on exactly one page, sorted by name (RES-3, SRV-1)."""
    await own_acme.gateway.import_document("acme", many(own_acme.upstream.url, 250), name="many")
    names: list[str] = []
    pages = 0
    async with own_acme.gateway.client("acme", own_acme.key, mode) as client:
        cursor: str | None = None
        while True:
            page = await client.list_tools(cursor=cursor)
            names += [tool.name for tool in page.tools]
            pages += 1
            cursor = page.next_cursor
            if cursor is None:
                break

    assert pages == 3
    assert names == sorted(
        {f"op_{number:04}" for number in range(250)} | {"create_pet", "delete_pet", "get_pet", "list_pets"}
    )


@pytest.mark.parametrize("mode", ERAS)
async def test_only_tools_are_declared(acme: Acme, mode: Mode) -> None:
    """MCP: families that a tenant has nothing of are not declared, and their methods do not exist (CAP-1)."""
    async with acme.gateway.client("acme", acme.key, mode) as client:
        capabilities = client.server_capabilities
        with pytest.raises(MCPError) as caught:
            await client.list_resources()

    assert capabilities.tools is not None
    assert (capabilities.resources, capabilities.prompts, capabilities.completions) == (None, None, None)
    assert caught.value.error.code == -32601


async def test_stored_credentials_go_out_and_callers_never_do(own_acme: Acme) -> None:
    """Ours: the upstream sees its own credential and nothing of the caller's (TEN-4)."""
    await own_acme.gateway.import_document(
        "acme", secured(own_acme.upstream.url), name="sec", credentials={"token": "s3cr3t-canary"}
    )
    own_acme.upstream.body = b'{"echo":"s3cr3t-canary"}'

    answer = await own_acme.gateway.rpc(
        "acme", own_acme.key, "tools/call", {"name": "op_0000"}, x_forwarded_for="1.2.3.4"
    )

    [seen] = own_acme.upstream.seen
    assert seen.header("x-token") == "s3cr3t-canary"
    assert own_acme.key not in str(seen)
    assert {"authorization", "x-forwarded-for", "mcp-method", "cookie"}.isdisjoint(
        name.lower() for name, _ in seen.headers
    )
    assert "s3cr3t-canary" not in answer.text


async def test_a_missing_credential_is_reported_and_nothing_is_sent(own_acme: Acme) -> None:
    """Ours: no half-authorised request leaves (CAL-4)."""
    await own_acme.gateway.import_document("acme", secured(own_acme.upstream.url), name="sec")

    answer = await own_acme.gateway.rpc("acme", own_acme.key, "tools/call", {"name": "op_0000"})

    assert answer.json()["result"]["_meta"]["gateway/error"]["code"] == "upstream.credential_missing"
    assert own_acme.upstream.seen == []


async def test_every_call_is_in_the_audit_trail(own_acme: Acme) -> None:
    """Ours: intent and outcome of what may do harm, the outcome of the rest (SAF-4)."""
    await own_acme.gateway.rpc("acme", own_acme.key, "tools/call", {"name": "get_pet", "arguments": {"id": 7}})
    await own_acme.gateway.rpc("acme", own_acme.key, "tools/call", {"name": "delete_pet", "arguments": {"id": 7}})

    trail = (await own_acme.gateway.admin.get("/tenants/acme/audit", params={"limit": 10})).json()["items"]
    calls = [(entry["kind"], entry["outcome"]) for entry in trail if entry["kind"].startswith("call")]

    assert calls == [("call", "ok"), ("call.intent", "intended"), ("call", "ok")]


async def test_a_denied_level_is_refused(own_acme: Acme) -> None:
    """Ours: the policy of the tenant decides (SAF-2)."""
    (await own_acme.gateway.admin.patch("/tenants/acme/policy", json={"dangerous": "deny"})).raise_for_status()

    answer = await own_acme.gateway.rpc(
        "acme", own_acme.key, "tools/call", {"name": "delete_pet", "arguments": {"id": 7}}
    )

    assert answer.json()["result"]["_meta"]["gateway/error"]["code"] == "policy.denied"
    assert own_acme.upstream.seen == []


async def test_beyond_the_rate_a_call_is_refused_with_a_hint(own_acme: Acme) -> None:
    """Ours: a tenant's rate is held, and the client gets the time to retry (TEN-3)."""
    limits = {"calls_per_second": 0.01, "burst": 2}
    (await own_acme.gateway.admin.patch("/tenants/acme/policy", json={"limits": limits})).raise_for_status()

    answers = [await own_acme.gateway.rpc("acme", own_acme.key, "tools/call", {"name": "list_pets"}) for _ in range(4)]

    refused = [answer.json()["error"] for answer in answers if "error" in answer.json()]
    assert len(refused) == 2
    assert {error["code"] for error in refused} == {42900}
    assert all(error["data"]["code"] == "limit.exceeded" and error["data"]["retry_after_s"] > 0 for error in refused)
    assert len(own_acme.upstream.seen) == 2
