"""HTTP hooks of guardrails: requests to hooks, effects of their answers, and hooks with unusable answers."""

import asyncio
import itertools
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from gateway.catalog.updates.signatures import is_signed, new_secret
from gateway.domain.updates.webhooks import SigningSecrets
from tests.behaviour.guardrails.conftest import Guarded, code_of, guarded_tenant
from tests.support.primitives import OPEN, add, tool
from tests.support.servers import TestServers
from tests.support.stand import Stand, running_stand
from tests.support.upstream import recording_upstream


async def test_a_hook_receives_a_signed_call_without_credentials(tenant: Guarded) -> None:
    """Ours: the request is signed by Standard Webhooks; it has the arguments and never the credentials (SAF-6)."""
    secret = {"name": "token", "place": "bearer", "value": "s3cr3t-word", "origins": [tenant.upstream.url]}
    await add(tenant.gateway, tenant.slug, "credentials", secret)
    url = f"{tenant.upstream.url}/pay/{{{{ amount }}}}"
    handler = {"kind": "http", "method": "POST", "url": url, "credential": "token"}
    schema = {"type": "object", "properties": {"amount": {"type": "integer"}}}
    await add(tenant.gateway, tenant.slug, "tools", tool("pay", handler, schema=schema))
    await tenant.hook(phases=["call", "result"])
    result = await tenant.call("pay", amount=12345678901234567890)

    assert not result["isError"], result
    before, after = tenant.receiver.seen
    for seen in (before, after):
        delivery, at = seen.header("webhook-id") or "", seen.header("webhook-timestamp") or ""
        signing = SigningSecrets(current=tenant.secret)
        assert is_signed(seen.header("webhook-signature") or "", signing, delivery=delivery, at=at, body=seen.body)
        assert b"s3cr3t-word" not in seen.body
        assert tenant.secret.encode() not in seen.body
        assert seen.header("authorization") is None
        assert (seen.method, seen.target) == ("POST", "/judge")
    asked = json.loads(before.body)
    assert asked.pop("correlation_id") == json.loads(after.body)["correlation_id"]
    subject = asked.pop("subject")
    assert asked == {
        "type": "guardrail.call",
        "guardrail": "judge",
        "tenant": tenant.slug,
        "action": "call",
        "target": "pay",
        "source": "custom",
        "arguments": {"amount": 12345678901234567890},
    }
    assert subject == json.loads(after.body)["subject"] != ""
    assert json.loads(after.body)["result"]["structuredContent"] == {"ok": True}
    assert tenant.upstream.seen[0].header("authorization") == "Bearer s3cr3t-word"


async def test_a_hook_blocks_calls_and_results(tenant: Guarded) -> None:
    """Ours: the hook's reason is shown, bounded and without control characters (SAF-6)."""
    tenant.receiver.body = json.dumps({"action": "block", "reason": "too\ndear\u202e " + "x" * 5000}).encode()
    await tenant.hook()
    blocked = await tenant.call(body={"name": "Rex"})
    text = blocked["content"][0]["text"]
    assert code_of(blocked) == "policy.call_blocked"
    assert "guardrail judge (http): too\\ndear\\u202e xxx" in text
    assert len(text) < 600
    assert tenant.upstream.seen == []

    (await tenant.gateway.admin.delete(f"/tenants/{tenant.slug}/guardrails/judge")).raise_for_status()
    await tenant.hook(phases=["result"])
    assert code_of(await tenant.call("list_pets")) == "policy.result_blocked"
    assert len(tenant.upstream.seen) == 1


_ODD_ANSWERS: dict[str, dict[str, Any]] = {
    "no JSON": {"body": b"<html>"},
    "another shape": {"body": b'["allow"]'},
    "no action": {"body": b"{}"},
    "another action": {"body": b'{"action":"replace","arguments":{}}'},
    "a reason that is no text": {"body": b'{"action":"allow","reason":7}'},
    "not UTF-8": {"body": b'{"action":"allow","reason":"\xff"}'},
    "deep": {"body": b'{"action":"allow","x":' + b"[" * 8000 + b"]" * 8000 + b"}"},
    "nothing": {"body": b""},
    "huge": {"body": b'{"action":"allow","reason":"' + b"x" * 100_000 + b'"}'},
    "an error": {"status": 500},
    "a refusal": {"status": 403},
    "no content": {"status": 204},
    "a redirect": {"status": 302, "headers": (("location", "/elsewhere"),)},
}


async def test_a_hook_without_a_valid_answer_fails_as_declared(tenant: Guarded) -> None:
    """Ours: `closed` is a finding, `open` lets the call pass; a redirect is not followed (SAF-6)."""
    allowing = tenant.receiver.body
    for (name, answer), (fail, code, sent) in itertools.product(
        _ODD_ANSWERS.items(), (("closed", "policy.call_blocked", 0), ("open", None, 1))
    ):
        tenant.receiver.reset()
        tenant.upstream.reset()
        for member, value in {"body": allowing, **answer}.items():
            setattr(tenant.receiver, member, value)
        await tenant.hook(fail=fail)  # one for each answer: after five failures its receiver is not asked

        assert code_of(await tenant.call(body={"name": "Rex"})) == code, name
        assert len(tenant.upstream.seen) == sent, name
        assert [seen.target for seen in tenant.receiver.seen] == ["/judge"], name
        (await tenant.gateway.admin.delete(f"/tenants/{tenant.slug}/guardrails/judge")).raise_for_status()


@pytest.mark.parametrize("fail", ["open", "closed"])
async def test_a_result_too_large_for_a_hook_is_not_sent(tenant: Guarded, fail: str) -> None:
    """Ours: requests to hooks are bounded; what is larger is a finding, so that padding evades no hook (SAF-6)."""
    shown = tool("shown", {"kind": "template", "json": {"text": "{{ text }}"}}, schema=OPEN)
    await add(tenant.gateway, tenant.slug, "tools", shown)
    await tenant.hook(phases=["result"], fail=fail)
    blocked = await tenant.call("shown", text="lorem ipsum " * 50_000)  # 600 kB, twice in the result
    assert code_of(blocked) == "policy.result_blocked"
    assert tenant.receiver.seen == []


async def test_a_slow_hook_times_out_and_is_then_skipped(tenant: Guarded) -> None:
    """Ours: each call waits for the hook's own time at most; after five failures the hook rests (SAF-6)."""
    tenant.receiver.gate = asyncio.Event()
    await tenant.hook(timeout_ms=100)
    texts: list[str] = []
    with anyio.fail_after(30):
        while not texts or "circuit breaker" not in texts[-1]:  # a call may lose its time before it reaches the hook
            texts.append((await tenant.call(body={"name": "Rex"}))["content"][0]["text"])
    assert len(texts) > 5
    assert all("within 100 ms" in text for text in texts[:-1])
    assert len(tenant.receiver.seen) <= 5
    assert tenant.upstream.seen == []


async def test_a_slow_hook_of_one_tenant_slows_no_other(stand: Stand, tenant: Guarded) -> None:
    """Ours: another tenant's hook at the same receiver answers while one tenant's hooks all wait (SAF-6, ISO-3)."""
    other = await guarded_tenant(stand, f"{tenant.slug}-other")
    async with _slow_receiver() as slow:
        signing = {"name": "slow", "place": "bearer", "value": new_secret(), "origins": [slow.url]}
        await add(tenant.gateway, tenant.slug, "credentials", signing)
        allow = {"allow": [slow.authority]}
        (await tenant.gateway.admin.put(f"/tenants/{tenant.slug}/egress", json=allow)).raise_for_status()
        await tenant.hook(url=f"{slow.url}/judge", credential="slow", timeout_ms=5000)
        await other.hook()
        slow.gate = asyncio.Event()
        texts: list[str] = []

        async def call() -> None:
            texts.append((await tenant.call(body={"name": "Rex"}))["content"][0]["text"])

        with anyio.fail_after(30):
            async with anyio.create_task_group() as group:
                for _ in range(40):
                    group.start_soon(call)
                await slow.arrived.wait()
                assert code_of(await other.call(body={"name": "Rex"})) is None
                assert [json.loads(seen.body)["tenant"] for seen in slow.seen] == [tenant.slug] * len(slow.seen)
                assert len(slow.seen) <= 16 + sum("within 5000 ms" in text for text in texts)
                slow.gate.set()


async def test_a_hook_at_a_forbidden_address_is_not_called(tenant: Guarded) -> None:
    """Ours: hooks leave through the egress guard (SAF-6, ISO-1)."""
    async with _slow_receiver() as private:
        signing = {"name": "private", "place": "bearer", "value": new_secret(), "origins": [private.url]}
        await add(tenant.gateway, tenant.slug, "credentials", signing)
        await tenant.hook(url=f"{private.url}/judge", credential="private")
        blocked = await tenant.call(body={"name": "Rex"})
        assert code_of(blocked) == "policy.call_blocked"
        assert private.seen == []


@pytest.mark.parametrize(("fail", "code"), [("closed", "policy.call_blocked"), ("open", None)])
async def test_a_hook_that_the_policy_forbids_later_is_not_called(tenant: Guarded, fail: str, code: str | None) -> None:
    """Ours: a narrower list of origins also holds for the hooks that were there before (SAF-6)."""
    await tenant.hook(fail=fail)
    assert code_of(await tenant.call(body={"name": "Rex"})) is None
    policy = {"http_origins": [tenant.upstream.url]}
    (await tenant.gateway.admin.patch(f"/tenants/{tenant.slug}/policy", json=policy)).raise_for_status()
    assert code_of(await tenant.call(body={"name": "Rex"})) == code
    assert len(tenant.receiver.seen) == 1


async def test_a_hook_is_signed_for_its_origin_alone(tenant: Guarded) -> None:
    """Ours: when its credential no longer fits, the hook is not asked and fails as declared (SAF-6, TEN-4)."""
    await tenant.hook()
    place = f"/tenants/{tenant.slug}/credentials/signing"
    kept = await tenant.gateway.admin.delete(place)
    assert kept.status_code == 409
    assert "guardrail judge" in kept.json()["detail"]
    for value, origin in ((tenant.secret, "https://elsewhere.example"), ("no signing secret", tenant.receiver.url)):
        body = {"place": "bearer", "value": value, "origins": [origin]}
        (await tenant.gateway.admin.put(place, json=body)).raise_for_status()
        assert code_of(await tenant.call(body={"name": "Rex"})) == "policy.call_blocked"
    assert tenant.receiver.seen == []


async def test_a_hook_that_is_the_gateway_itself_ends(servers: TestServers) -> None:
    """Ours: a hook at the tenant's own URL starts no call, because its request is none of MCP (SAF-6)."""
    async with _looping(servers) as (tenant, url):
        await tenant.hook(url=f"{url}/t/{tenant.slug}/mcp", credential="own")
        with anyio.fail_after(20):
            assert code_of(await tenant.call(body={"name": "Rex"})) == "policy.call_blocked"
        assert tenant.upstream.seen == []


async def test_a_hook_whose_receiver_calls_the_same_tool_ends(servers: TestServers) -> None:
    """Ours: recursion through a receiver is bounded by the slots, the time and the circuit of the hook (SAF-6)."""
    async with _looping(servers) as (tenant, _):
        asked, running, calmed = 0, 0, asyncio.Event()

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal asked, running
            await reader.readuntil(b"\r\n\r\n")
            asked, running = asked + 1, running + 1
            await tenant.call(body={"name": "again"})
            running -= 1
            if running == 0:
                calmed.set()
            body = b'{"action":"allow"}'
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        allow = {"allow": [url.removeprefix("http://")]}
        (await tenant.gateway.admin.put(f"/tenants/{tenant.slug}/egress", json=allow)).raise_for_status()
        signing = {"name": "loop", "place": "bearer", "value": new_secret(), "origins": [url]}
        await add(tenant.gateway, tenant.slug, "credentials", signing)
        await tenant.hook(url=f"{url}/judge", credential="loop", timeout_ms=1000)
        with anyio.fail_after(30):
            assert code_of(await tenant.call(body={"name": "Rex"})) == "policy.call_blocked"
            await calmed.wait()
        server.close()
        assert 1 < asked <= 16 + 8


@asynccontextmanager
async def _slow_receiver() -> AsyncGenerator[Any]:
    async with recording_upstream() as receiver:
        receiver.body = b'{"action":"allow"}'
        yield receiver


@asynccontextmanager
async def _looping(servers: TestServers) -> AsyncGenerator[tuple[Guarded, str]]:
    """A tenant of a gateway that it may call itself."""
    async with running_stand(servers) as stand:
        gateway, tenant = stand.gateway, await guarded_tenant(stand, "looping")
        allow = {"allow": [gateway.url.removeprefix("http://")]}
        (await gateway.admin.put("/tenants/looping/egress", json=allow)).raise_for_status()
        own = {"name": "own", "place": "bearer", "value": new_secret(), "origins": [gateway.url]}
        await add(gateway, "looping", "credentials", own)
        yield tenant, gateway.url
