"""2026-07-28: JSON or a stream, what the client carries between rounds, and what its leaving means."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
import pytest

from tests.behaviour.sessions.conftest import URIS, Talk
from tests.support.documents import pets
from tests.support.events import Events
from tests.support.gateway import ACCEPT, META, MODERN, RunningGateway, running_gateway
from tests.support.primitives import add, static_tool, text_prompt, tool
from tests.support.replicas import Replica, until
from tests.support.servers import TestServers
from tests.support.serving import NO_TLS
from tests.support.silent_upstream import SilentUpstream, patient_upstream

CAPABLE: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}}
YES = {"action": "accept", "content": {"confirm": True}}
LEVEL = "io.modelcontextprotocol/logLevel"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


def _headers(key: str, method: str, params: dict[str, Any]) -> dict[str, str]:
    named = params.get("name") or params.get("uri")
    return {
        "authorization": f"Bearer {key}",
        "accept": ACCEPT,
        "mcp-protocol-version": MODERN,
        "mcp-method": method,
        **({"mcp-name": named} if named else {}),
    }


def _body(method: str, params: dict[str, Any], capabilities: dict[str, Any], **meta: Any) -> dict[str, Any]:
    envelope = {**META, "io.modelcontextprotocol/clientCapabilities": capabilities, **meta}
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": envelope}}


async def _post(
    talk: Talk, at: Replica, method: str, params: dict[str, Any], *, key: str | None = None, **meta: Any
) -> httpx2.Response:
    async with httpx2.AsyncClient(verify=NO_TLS, base_url=at.gateway.url, timeout=20, trust_env=False) as client:
        return await client.post(
            f"/t/{talk.slug}/mcp",
            json=_body(method, params, CAPABLE, **meta),
            headers=_headers(key or talk.key, method, params),
        )


@asynccontextmanager
async def _streaming(
    talk: Talk, at: Replica, method: str, params: dict[str, Any], *, key: str | None = None, **meta: Any
) -> AsyncGenerator[Events]:
    async with (
        httpx2.AsyncClient(verify=NO_TLS, base_url=at.gateway.url, timeout=20, trust_env=False) as client,
        client.stream(
            "POST",
            f"/t/{talk.slug}/mcp",
            json=_body(method, params, CAPABLE, **meta),
            headers=_headers(key or talk.key, method, params),
        ) as response,
    ):
        yield Events(response)


async def _ask(talk: Talk, name: str = "danger", at: Replica | None = None) -> dict[str, Any]:
    """The first round of a call that asks."""
    answer = await _post(talk, at or talk.replicas.a, "tools/call", {"name": name, "arguments": {}})
    result: dict[str, Any] = answer.json()["result"]
    assert result["resultType"] == "input_required"
    return result


async def test_a_fast_answer_is_json_and_one_with_messages_is_a_stream(talk: Talk) -> None:
    """MCP: the server chooses; a stream has its messages, then the answer, and closes (SRV-1)."""
    plain = await _post(talk, talk.replicas.a, "tools/call", {"name": "echo", "arguments": {"name": "you"}})
    quiet = await _post(talk, talk.replicas.a, "tools/call", {"name": "count", "arguments": {}})
    async with _streaming(
        talk, talk.replicas.b, "tools/call", {"name": "count", "arguments": {}}, progressToken="p"
    ) as events:
        headers = events.response.headers
        reported = [event.message for event in await events.rest()]

    assert plain.headers["content-type"] == quiet.headers["content-type"] == "application/json"
    assert headers["content-type"] == "text/event-stream"
    assert headers["x-accel-buffering"] == "no"
    assert [each["params"]["progress"] for each in reported[:-1]] == [1, 2, 3, 4, 5, 6]
    assert reported[-1]["result"]["resultType"] == "complete"


async def test_log_messages_need_a_requested_level(talk: Talk) -> None:
    """MCP: only on requests that name a level, at or above it; what is no level is refused (SRV-1)."""
    found: dict[str, list[str]] = {}
    for level in ("debug", "warning"):
        async with _streaming(
            talk, talk.replicas.a, "tools/call", {"name": "chatter", "arguments": {}}, **{LEVEL: level}
        ) as events:
            reported = [event.message for event in await events.rest()]
            found[level] = [each["params"]["level"] for each in reported[:-1]]
    silent = await _post(talk, talk.replicas.a, "tools/call", {"name": "chatter", "arguments": {}})
    refused = await _post(talk, talk.replicas.a, "tools/call", {"name": "chatter", "arguments": {}}, **{LEVEL: "x"})

    assert found == {"debug": ["debug", "error"], "warning": ["error"]}
    assert silent.headers["content-type"] == "application/json"
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, -32602)


async def test_rounds_may_go_to_different_replicas(talk: Talk) -> None:
    """MCP: the state is the client's to carry; nothing of it is kept here (SRV-1)."""
    asked = await _ask(talk)
    params = {
        "name": "danger",
        "arguments": {},
        "inputResponses": dict.fromkeys(asked["inputRequests"], YES),
        "requestState": asked["requestState"],
    }

    answer = (await _post(talk, talk.replicas.b, "tools/call", params)).json()

    (question,) = asked["inputRequests"].values()
    assert question["method"] == "elicitation/create"
    assert answer["result"]["content"][0]["text"] == "accept true"
    assert "accept" not in asked["requestState"]


async def test_a_state_is_good_once(talk: Talk) -> None:
    """Ours: an answer that was given once counts once, on all replicas together (SAF-3)."""
    asked = await _ask(talk)
    params = {
        "name": "danger",
        "arguments": {},
        "inputResponses": {"ok": YES},
        "requestState": asked["requestState"],
    }
    first, second = [(await _post(talk, at, "tools/call", params)).json() for at in talk.replicas.all]

    assert first["result"]["resultType"] == "complete"
    assert second["error"]["code"] == -32602


async def test_a_state_belongs_to_its_principal_its_tool_and_its_arguments(own_talk: Talk) -> None:
    """Ours: the answer for one call is refused by another (TEN-5, SAF-3)."""
    stranger = await own_talk.gateway.create_key(own_talk.slug)
    await add(own_talk.gateway, own_talk.slug, "tools", _asking("other"))

    async def use(name: str, arguments: dict[str, Any], key: str | None = None, cut: int = 0) -> Any:
        state = (await _ask(own_talk))["requestState"]
        params = {
            "name": name,
            "arguments": arguments,
            "inputResponses": {"ok": YES},
            "requestState": state[: len(state) - cut] + "A" * cut,
        }
        return (await _post(own_talk, own_talk.replicas.b, "tools/call", params, key=key)).json()

    assert (await use("danger", {}))["result"]["resultType"] == "complete"
    for refused in (
        await use("other", {}),
        await use("danger", {"x": 1}),
        await use("danger", {}, key=stranger),
        await use("danger", {}, cut=4),
    ):
        assert refused["error"]["code"] == -32602


def _asking(name: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"confirm": {"type": "boolean"}}, "required": ["confirm"]}
    ask = {"ask": {"key": "ok", "message": "Really?", "schema": schema}, "as": "ok"}
    return tool(name, {"kind": "steps", "steps": [ask, {"return": {"text": "done"}}]}, safety="safe")


async def test_an_unrequested_confirmation_has_no_effect(own_talk: Talk) -> None:
    """Ours: a client cannot confirm before it was asked to; only a sealed state proves that it was (TEN-5, SAF-2)."""
    policy = {"moderate": "confirm"}
    (await own_talk.gateway.admin.patch(f"/tenants/{own_talk.slug}/policy", json=policy)).raise_for_status()
    await add(own_talk.gateway, own_talk.slug, "tools", {**static_tool("touchy"), "safety": "moderate"})
    params = {"name": "touchy", "arguments": {}, "inputResponses": {"gateway/confirm": YES}}

    forged = (await _post(own_talk, own_talk.replicas.a, "tools/call", params)).json()["result"]
    (question,) = forged["inputRequests"]
    answered = {**params, "inputResponses": {question: YES}, "requestState": forged["requestState"]}
    first, second = [(await _post(own_talk, at, "tools/call", answered)).json() for at in own_talk.replicas.all]

    assert forged["resultType"] == "input_required"
    assert first["result"]["content"][0]["text"] == "hello"
    assert second["error"]["code"] == -32602


async def test_missing_answers_are_asked_for_again_and_others_ignored(talk: Talk) -> None:
    """MCP: the server asks again; keys that it did not ask for do not matter (SRV-1)."""
    asked = await _ask(talk)
    params = {
        "name": "danger",
        "arguments": {},
        "inputResponses": {"else": YES},
        "requestState": asked["requestState"],
    }
    again = (await _post(talk, talk.replicas.b, "tools/call", params)).json()["result"]
    assert again["resultType"] == "input_required"

    params = {**params, "inputResponses": {"ok": YES}, "requestState": again["requestState"]}
    answer = (await _post(talk, talk.replicas.a, "tools/call", params)).json()

    assert answer["result"]["content"][0]["text"] == "accept true"


@pytest.mark.parametrize("answer", [{"action": "perhaps"}, {"roots": []}, 7])
async def test_a_malformed_answer_is_refused(talk: Talk, answer: Any) -> None:
    """MCP: malformed answers are an error (SRV-1)."""
    asked = await _ask(talk)
    params = {
        "name": "danger",
        "arguments": {},
        "inputResponses": {"ok": answer},
        "requestState": asked["requestState"],
    }

    refused = (await _post(talk, talk.replicas.b, "tools/call", params)).json()

    assert refused["error"]["code"] == -32602


@pytest.mark.parametrize("name", ["get_pet", "silent", "wait"])
async def test_leaving_is_cancelling(own_talk: Talk, name: str) -> None:
    """MCP: a client that disconnects has cancelled: the upstream is released, the trail records it (SRV-1, SAF-4)."""
    own_talk.upstream.gate = asyncio.Event()
    arguments = {"id": 7} if name == "get_pet" else {}

    async def ask() -> None:
        async with _streaming(
            own_talk, own_talk.replicas.a, "tools/call", {"name": name, "arguments": arguments}, progressToken=1
        ) as events:
            await events.rest()

    asking = asyncio.create_task(ask())
    await own_talk.upstream.arrived.wait()
    asking.cancel()

    async def is_recorded() -> bool:
        found = await own_talk.gateway.admin.get(f"/tenants/{own_talk.slug}/audit", params={"limit": 20})
        return any(entry.get("outcome") == "cancelled" for entry in found.json()["items"])

    await until(is_recorded)


@pytest.fixture(scope="module")
async def patient(servers: TestServers) -> AsyncGenerator[tuple[RunningGateway, SilentUpstream, str]]:
    """A gateway before an upstream that never answers, and a key."""
    with servers.database() as database:
        async with (
            patient_upstream() as upstream,
            running_gateway(database.app_url, servers.own_redis(), egress_allow=[upstream.authority]) as gateway,
        ):
            await gateway.create_tenant("acme")
            await gateway.import_document("acme", pets(upstream.url))
            yield gateway, upstream, await gateway.create_key("acme")


@pytest.mark.parametrize("accept", [ACCEPT, "application/json"])
@pytest.mark.parametrize("meta", [{}, {"com.example/more": 1}])
async def test_leaving_ends_the_upstream_call(
    patient: tuple[RunningGateway, SilentUpstream, str], accept: str, meta: dict[str, Any]
) -> None:
    """Ours: the connection to the upstream is closed when its caller no longer waits, on each path of the call and also
    where the client takes no stream (SRV-1).
    """
    gateway, upstream, key = patient
    upstream.arrived.clear()
    upstream.left.clear()
    params = {"name": "get_pet", "arguments": {"id": 7}}
    async with httpx2.AsyncClient(verify=NO_TLS, base_url=gateway.url, trust_env=False) as client:
        sending = asyncio.create_task(
            client.post(
                "/t/acme/mcp",
                json=_body("tools/call", params, {}, **meta),
                headers={**_headers(key, "tools/call", params), "accept": accept},
            )
        )
        with anyio.fail_after(10):
            await upstream.arrived.wait()
        assert not upstream.left.is_set()
        sending.cancel()
        with anyio.fail_after(10):
            await upstream.left.wait()


async def test_listening_begins_with_the_served_notifications(bare_talk: Talk) -> None:
    """MCP: acknowledged first, with ids, and only what was asked for, declared and may be read (RES-4)."""
    await add(bare_talk.gateway, bare_talk.slug, "prompts", text_prompt("greet"))
    wanted = {
        "toolsListChanged": True,
        "promptsListChanged": True,
        "resourceSubscriptions": [URIS[0], "note://none", URIS[0]],
    }
    async with _streaming(bare_talk, bare_talk.replicas.b, "subscriptions/listen", {"notifications": wanted}) as events:
        acknowledged = await events.message()
        await add(bare_talk.gateway, bare_talk.slug, "resources", _note("note://9"))
        await add(bare_talk.gateway, bare_talk.slug, "tools", static_tool("brand_new"))
        changed = await events.message()
        await bare_talk.update(URIS[1])
        await bare_talk.update(URIS[0])
        updated = await events.message()

    assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
    assert acknowledged["params"]["notifications"] == {
        "toolsListChanged": True,
        "promptsListChanged": True,
        "resourceSubscriptions": [URIS[0]],
    }
    assert changed["method"] == "notifications/tools/list_changed"
    assert (updated["method"], updated["params"]["uri"]) == ("notifications/resources/updated", URIS[0])
    for reported in (acknowledged, changed, updated):
        assert reported["params"]["_meta"][SUBSCRIPTION] == 1


def _note(uri: str) -> dict[str, Any]:
    handler = {"kind": "static", "contents": [{"uri": uri, "mimeType": "text/plain", "text": "x"}]}
    return {"definition": {"uri": uri, "name": uri[-1]}, "handler": handler}


async def test_a_listener_gets_no_update_of_an_unreadable_resource(bare_talk: Talk) -> None:
    """Ours: a notification names what can be read now (RES-4, TEN-5)."""
    wanted = {"resourceSubscriptions": list(URIS[:2])}
    async with _streaming(bare_talk, bare_talk.replicas.b, "subscriptions/listen", {"notifications": wanted}) as events:
        await events.message()
        found = (await bare_talk.gateway.admin.get(f"/tenants/{bare_talk.slug}/resources")).json()["items"]
        first = next(each["id"] for each in found if each["definition"]["uri"] == URIS[0])
        hidden = await bare_talk.gateway.admin.patch(
            f"/tenants/{bare_talk.slug}/resources/{first}", json={"enabled": False}
        )
        assert hidden.status_code == 200, hidden.text
        await bare_talk.gateway.admin.post(f"/tenants/{bare_talk.slug}/resources/updated", json={"uri": URIS[0]})
        await bare_talk.update(URIS[1])
        updated = await events.message()

    assert updated["params"]["uri"] == URIS[1]


async def test_streams_are_capped_per_tenant_over_both_replicas(bare_talk: Talk) -> None:
    """Ours: one stream more than the tenant may have is refused with a hint, in both eras (TEN-3)."""
    policy = {"limits": {"streams": 3}}
    (await bare_talk.gateway.admin.patch(f"/tenants/{bare_talk.slug}/policy", json=policy)).raise_for_status()
    wire = await bare_talk.wire()
    listen: dict[str, Any] = {"notifications": {"toolsListChanged": True}}
    a, b = bare_talk.replicas.all
    async with (
        _streaming(bare_talk, a, "subscriptions/listen", listen) as one,
        _streaming(bare_talk, b, "subscriptions/listen", listen) as two,
        wire.listening(b) as three,
    ):
        for events in (one, two, three):
            await events.next()
        other = await bare_talk.wire()
        async with other.listening(a) as fourth:
            refused = json.loads(await fourth.response.aread())
        answer = (await _post(bare_talk, b, "subscriptions/listen", listen)).json()
        async with wire.listening(a) as again:  # its own place is free for it
            await again.next()

    assert fourth.response.status_code == 429
    assert int(fourth.response.headers["retry-after"]) > 0
    assert refused["error"]["code"] == answer["error"]["code"] == 42900
    assert answer["error"]["data"]["retry_after_s"] > 0

    async def is_free() -> bool:
        async with other.listening(b) as free:
            return free.response.status_code == 200

    await until(is_free)


async def test_a_drained_replica_ends_its_listeners_with_a_result(talk: Talk) -> None:
    """MCP: a subscription that the server ends has a final result (SRV-3)."""
    listen: dict[str, Any] = {"notifications": {"toolsListChanged": True}}
    async with _streaming(talk, talk.replicas.a, "subscriptions/listen", listen) as events:
        await events.message()
        stopping = asyncio.create_task(talk.replicas.a.stop())
        reported = [event.message for event in await events.rest()]

    assert await stopping == 0
    assert reported[-1]["result"]["resultType"] == "complete"
    assert reported[-1]["result"]["_meta"][SUBSCRIPTION] == 1


async def test_possibly_missed_changes_are_notified(bare_talk: Talk) -> None:
    """Ours: this era has no replay, so after a gap a listener is notified to read everything again (RES-4)."""
    listen: dict[str, Any] = {"notifications": {"toolsListChanged": True, "resourceSubscriptions": [URIS[0]]}}
    async with _streaming(bare_talk, bare_talk.replicas.b, "subscriptions/listen", listen) as events:
        await events.message()
        bare_talk.replicas.b.drop_subscription()
        methods = {(await events.message())["method"] for _ in range(2)}

    assert methods == {"notifications/tools/list_changed", "notifications/resources/updated"}
