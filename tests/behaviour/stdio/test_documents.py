"""Documents served on standard streams, without a database: the call pipeline and its refusals."""

import json
from typing import Any

import anyio
import pytest

from gateway.app.local.documents import LocalDocument, LocalOptions
from gateway.domain.http.requests import Credential
from gateway.domain.sources import Exposure
from gateway.domain.tenancy.policy import Decision, Policy
from gateway.errors import BadInput, NameTaken
from tests.behaviour.stdio.conftest import QUERY, documents_client, pets_document
from tests.support.documents import secured
from tests.support.upstream import RecordingUpstream

REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_document_is_served_in_every_handshake_revision(upstream: RecordingUpstream, revision: str) -> None:
    """MCP: a client shakes hands, lists and calls; arguments reach the upstream as the document describes (SRV-1,
    CAL-1).
    """
    async with documents_client(pets_document(upstream), upstream=upstream) as client:
        begun = await client.shake_hands(revision)
        listed = (await client.ask("tools/list"))["result"]["tools"]
        result = await client.call("get_pet", {"id": 7, "verbose": True})

    assert begun["protocolVersion"] == revision
    assert begun["capabilities"] == {"tools": {}}
    assert {tool["name"] for tool in listed} == {"list_pets", "create_pet", "get_pet", "delete_pet"}
    assert json.loads(result["content"][0]["text"]) == {"ok": True}
    assert [seen.target for seen in upstream.seen] == ["/v1/pets/7?verbose=true"]


async def test_a_document_is_served_without_a_session(upstream: RecordingUpstream) -> None:
    """MCP: in 2026-07-28 each request is independent, and the server can be discovered (SRV-1)."""
    async with documents_client(pets_document(upstream), upstream=upstream) as client:
        found = (await client.ask("server/discover", modern=True))["result"]
        listed = (await client.ask("tools/list", modern=True))["result"]
        upstream.body = b'{"big": 123456789012345678901234567890, "exact": 1.10}'
        called = await client.begin("tools/call", {"name": "list_pets", "arguments": {}}, modern=True)
        with anyio.fail_after(10):
            line = await client.out.readline()

    assert found["supportedVersions"] == ["2026-07-28"]
    assert len(listed["tools"]) == 4
    assert f'"id":{called}' in line.decode()
    assert b'"structuredContent":{"big":123456789012345678901234567890,"exact":1.10}' in line  # every digit


async def test_invalid_arguments_and_unknown_tools_send_nothing(upstream: RecordingUpstream) -> None:
    """Ours: validation is the gateway's own, with the path of the fault (CAL-2, CAL-3)."""
    async with documents_client(pets_document(upstream), upstream=upstream) as client:
        await client.shake_hands()
        refused = await client.call("get_pet", {"id": "seven"})
        unknown = await client.ask("tools/call", {"name": "no_such_tool"})
        assert upstream.seen == []
        spelled = await client.call("get_pet", {"id": "7"})

    assert spelled["isError"] is False
    assert [seen.target for seen in upstream.seen] == ["/v1/pets/7"]
    assert refused["isError"] is True
    assert "/id" in refused["content"][0]["text"]
    assert unknown["error"]["code"] == -32602


@pytest.mark.parametrize(("answer", "is_made"), [({"confirm": True}, True), ({"confirm": False}, False)])
async def test_a_call_is_confirmed_by_the_user_of_a_session(
    upstream: RecordingUpstream, answer: dict[str, bool], is_made: bool
) -> None:
    """Ours: with `--moderate confirm`, a changing call asks the client first, and happens only after a yes (SAF-2)."""
    policy = Policy(moderate=Decision.CONFIRM)
    async with documents_client(pets_document(upstream), upstream=upstream, policy=policy) as client:
        await client.shake_hands(elicitation={})
        asked_id = await client.begin("tools/call", {"name": "create_pet", "arguments": {"body": {"name": "Rex"}}})
        question = await client.next()
        assert question["method"] == "elicitation/create"
        assert "POST" in question["params"]["message"]
        assert upstream.seen == []
        given = {"action": "accept", "content": answer}
        await client.send({"jsonrpc": "2.0", "id": question["id"], "result": given})
        result = (await client.response_to(asked_id))["result"]

    assert result.get("isError", False) is not is_made
    assert len(upstream.seen) == int(is_made)


async def test_a_call_is_confirmed_without_a_session_and_only_once(upstream: RecordingUpstream) -> None:
    """MCP: in 2026-07-28 the question is a result with a sealed state, which answers one call only (SAF-2)."""
    policy = Policy(dangerous=Decision.CONFIRM)
    meta: dict[str, Any] = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    }
    call = {"name": "delete_pet", "arguments": {"id": 7}, "_meta": meta}
    async with documents_client(pets_document(upstream), upstream=upstream, policy=policy) as client:
        asked = (await client.ask("tools/call", call))["result"]
        assert asked["resultType"] == "input_required"
        answers = {key: {"action": "accept", "content": {"confirm": True}} for key in asked["inputRequests"]}
        answered = {**call, "inputResponses": answers, "requestState": asked["requestState"]}
        first = (await client.ask("tools/call", answered))["result"]
        again = await client.ask("tools/call", answered)
        other = await client.ask("tools/call", {**answered, "arguments": {"id": 8}})

    assert first.get("isError", False) is False
    assert [seen.target for seen in upstream.seen] == ["/v1/pets/7"]
    assert again["error"]["code"] == other["error"]["code"] == -32602


async def test_a_client_that_cannot_ask_its_user_is_refused(upstream: RecordingUpstream) -> None:
    """Ours: without elicitation, a call that needs a confirmation is not made; the refusal names the remedy (SAF-2)."""
    policy = Policy(moderate=Decision.CONFIRM, dangerous=Decision.DENY)
    async with documents_client(pets_document(upstream), upstream=upstream, policy=policy) as client:
        await client.shake_hands()
        silent = await client.call("create_pet", {"body": {"name": "Rex"}})
        denied = await client.call("delete_pet", {"id": 7})

    assert silent["isError"] is True
    assert "--moderate allow" in silent["content"][0]["text"]
    assert "admin" not in silent["content"][0]["text"], "there is none"
    assert denied["isError"] is True
    assert upstream.seen == []


async def test_query_tools_describe_documents_and_call_them(upstream: RecordingUpstream) -> None:
    """Ours: with `--expose query` only the query tools are listed, over all documents (OAS-5)."""
    documents = (pets_document(upstream), pets_document(upstream, name="more", prefix="more"))
    async with documents_client(*documents, upstream=upstream, options=QUERY) as client:
        await client.shake_hands()
        listed = (await client.ask("tools/list"))["result"]["tools"]
        endpoints = await client.call("list_endpoints", {"source": "more"})
        asked = {"source": "pets", "method": "GET", "path": "/pets/{id}", "arguments": {"id": 3}}
        called = await client.call("call_endpoint", asked)

    assert len(listed) == 7
    assert {tool["name"] for tool in listed} >= {"get_api_info", "call_endpoint"}
    assert len(endpoints["structuredContent"]["endpoints"]) == 4
    assert called.get("isError", False) is False, called
    assert [seen.target for seen in upstream.seen] == ["/v1/pets/3"]


async def test_documents_with_the_same_names_need_prefixes(upstream: RecordingUpstream) -> None:
    """Ours: a taken name is refused with a prefix that helps, and with prefixes both are served (PRG-4)."""
    with pytest.raises(NameTaken) as caught:
        async with documents_client(pets_document(upstream), pets_document(upstream, name="b"), upstream=upstream):
            pass
    assert caught.value.suggested_prefix == "b"
    both = LocalOptions(expose=Exposure.BOTH)
    documents = (pets_document(upstream, prefix="a"), pets_document(upstream, name="b", prefix="b"))
    async with documents_client(*documents, upstream=upstream, options=both) as client:
        await client.shake_hands()
        assert len((await client.ask("tools/list"))["result"]["tools"]) == 4 + 4 + 7


async def test_a_credential_goes_to_its_own_document_only(upstream: RecordingUpstream) -> None:
    """Ours: two documents with a scheme of the same name never share a credential (ISO-1)."""
    documents = [
        LocalDocument(name=name, place=name, prefix=name, content=json.dumps(secured(upstream.url)).encode())
        for name in "ab"
    ]
    secret = Credential(value="token-of-a")
    with pytest.raises(BadInput, match="a/token or b/token"):
        async with documents_client(*documents, upstream=upstream, options=LocalOptions(credentials={"token": secret})):
            pass
    with pytest.raises(BadInput, match="no document declares"):
        async with documents_client(*documents, upstream=upstream, options=LocalOptions(credentials={"c/x": secret})):
            pass
    options = LocalOptions(credentials={"a/token": secret})
    async with documents_client(*documents, upstream=upstream, options=options) as client:
        await client.shake_hands()
        allowed = await client.call("a_op_0000")
        missing = await client.call("b_op_0000")

    assert allowed.get("isError", False) is False
    assert missing["isError"] is True
    assert [seen.header("X-Token") for seen in upstream.seen] == ["token-of-a"]
