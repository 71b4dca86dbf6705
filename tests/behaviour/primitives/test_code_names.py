"""Names that both code and tenants use, and notifications to open clients about code registered while serving."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
import pytest

from gateway.embed import Context, DuplicateToolError, Gateway, NameTaken, Settings, ToolShape
from tests.support.events import Events
from tests.support.gateway import OPEN_POLICY, OPERATOR_KEY, SECRET_KEY, RunningGateway
from tests.support.handshake import Session, open_session
from tests.support.hosting import hosted
from tests.support.primitives import add, static_tool, text_prompt, text_resource
from tests.support.serving import NO_TLS

ANY: ToolShape = {"description": "Does something.", "inputSchema": {"type": "object", "properties": {}}}
Speak = Callable[[Context], str]


def _states(text: str) -> Speak:
    return lambda _: text


@pytest.fixture
def settings(database_url: str, redis_url: str) -> Settings:
    """Settings of a gateway with servers of its own."""
    return Settings.model_validate(
        {
            "database_url": database_url,
            "redis_url": redis_url,
            "secret_keys": (SECRET_KEY,),
            "operator_key": OPERATOR_KEY,
            "tenant_policy": OPEN_POLICY,
        }
    )


async def _call(running: RunningGateway, slug: str, key: str, name: str) -> str:
    result = (await running.rpc(slug, key, "tools/call", {"name": name, "arguments": {}})).json()["result"]
    text: str = result["content"][0]["text"]
    return text


async def _hidden_in_trail(running: RunningGateway, slug: str, *, at_least: int) -> list[tuple[str, Any]]:
    """The `code.hide` entries of a tenant's trail, once there are that many."""
    with anyio.fail_after(30):
        while True:
            entries = (await running.admin.get(f"/tenants/{slug}/audit", params={"limit": 100})).json()["items"]
            found = [(one["target"], one["detail"]["behind"]) for one in entries if one["action"] == "code.hide"]
            if len(found) >= at_least:
                return sorted(found)
            await anyio.sleep(0.05)


async def _code_finding(running: RunningGateway) -> dict[str, str]:
    findings = (await running.admin.get("/doctor")).json()["findings"]
    found: dict[str, str] = {one["check"]: one for one in findings}["code"]
    return found


async def test_code_that_takes_a_tenants_name_learns_of_it(settings: Settings) -> None:
    """Ours: code is refused where every tenant has the name, else hidden where one has; the result, the tenant's trail,
    the doctor and the admin lists report it, also after a restart, and the tenant's object stays (PRG-4, TEN-5).
    """
    gateway = Gateway(settings)
    document = {
        "openapi": "3.1.0",
        "info": {"title": "Pets", "version": "1"},
        "servers": [{"url": "https://api.example.com"}],
        "paths": {"/pets": {"get": {"operationId": "list_pets", "responses": {"200": {"description": "ok"}}}}},
    }

    async with hosted(gateway.asgi()) as running:
        keys: dict[str, str] = {}
        for slug in ("acme", "globex", "initech"):
            await running.create_tenant(slug)
            keys[slug] = await running.create_key(slug)
        await add(running, "acme", "tools", {**static_tool("say", "mine"), "enabled": True})
        await add(running, "acme", "resources", text_resource("docs://x"))
        await add(running, "acme", "prompts", text_prompt("greets"))
        await running.import_document("globex", document)

        with pytest.raises(DuplicateToolError, match=r"acme has a tool named 'say' already \(custom\)"):
            gateway.register_tool("say", ANY, _states("code"), tenants=["acme"])
        with pytest.raises(DuplicateToolError, match=r"globex .* \(source:api\)"):
            gateway.register_tool("list_pets", ANY, _states("code"), tenants=["globex"])
        with pytest.raises(NameTaken, match="docs://x"):
            gateway.register_resource(
                "docs://x", {"name": "x", "mimeType": "text/plain"}, _states("x"), tenants=["acme"]
            )
        with pytest.raises(NameTaken, match="greets"):
            await anyio.to_thread.run_sync(
                lambda: gateway.register_prompt("greets", {}, _states("x"), tenants=["acme"])  # from any thread
            )
        assert gateway.register_tool("list_pets", ANY, _states("acme's"), tenants=["acme"]).hidden_for == ()
        assert gateway.register_tool("list_pets", ANY, _states("initech's"), tenants=["initech"]).hidden_for == ()
        assert gateway.register_tool("say", ANY, _states("code")).hidden_for == ("acme",)

        assert await _call(running, "acme", keys["acme"], "say") == "mine"
        assert await _call(running, "globex", keys["globex"], "say") == "code"
        assert await _call(running, "acme", keys["acme"], "list_pets") == "acme's"
        assert await _call(running, "initech", keys["initech"], "list_pets") == "initech's"
        assert await _hidden_in_trail(running, "acme", at_least=1) == [("say", "custom")]
        finding = await _code_finding(running)
        assert (finding["status"], "acme: the tool say (custom)" in finding["detail"]) == ("warning", True)
        assert "globex" not in finding["detail"]
        shown = (await running.admin.get("/tenants/acme/tools/say")).json()
        assert (shown["status"]["origin"], shown["status"]["hides_code"]) == ("custom", True)

    gateway.register_resource("docs://x", {"name": "x", "mimeType": "text/plain"}, _states("code"))  # no gateway serves
    async with hosted(gateway.asgi()) as running:
        assert [(one.slug, one.family, one.name, one.owner) for one in gateway.hidden] == [
            ("acme", "resource", "docs://x", "custom"),
            ("acme", "tool", "say", "custom"),
        ]
        assert await _hidden_in_trail(running, "acme", at_least=2) == [("docs://x", "custom"), ("say", "custom")]
        assert (await running.admin.get("/tenants/acme/audit/verify")).json()["ok"] is True
        taken = await running.admin.post("/tenants/globex/tools", json=static_tool("say"))
        assert (taken.status_code, taken.json()["conflicts"]) == (409, [{"name": "say", "owner": "code"}])

        gone = await running.admin.delete("/tenants/acme/tools/say")
        assert gone.status_code < 300, gone.text
        assert await _call(running, "acme", keys["acme"], "say") == "code"
        gateway.unregister_resource("docs://x")
        assert (await _code_finding(running))["status"] == "ok"


@asynccontextmanager
async def _standalone(session: Session) -> AsyncGenerator[Events]:
    """The stream of a session that belongs to no request."""
    headers = {
        "authorization": f"Bearer {session.key}",
        "accept": "text/event-stream",
        "mcp-session-id": session.id,
        "mcp-protocol-version": "2025-11-25",
    }
    async with (
        httpx2.AsyncClient(base_url=session.gateway.url, headers=headers, verify=NO_TLS, trust_env=False) as http,
        http.stream("GET", f"/t/{session.place}/mcp", timeout=30) as response,
    ):
        yield Events(response)


async def _received(events: Events, wanted: set[str]) -> None:
    while wanted:
        wanted = wanted - {(await events.message())["method"]}


LISTS = {f"notifications/{name}/list_changed" for name in ("tools", "resources", "prompts")}


def _register_all(gateway: Gateway, word: str) -> None:
    gateway.register_tool(word, ANY, _states(word))
    gateway.register_resource(f"docs://{word}", {"name": word, "mimeType": "text/plain"}, _states(word))
    gateway.register_resource_template(f"{word}://{{id}}", {"name": word, "mimeType": "text/plain"}, _states(word))
    gateway.register_prompt(word, {}, _states(word))


def _unregister_all(gateway: Gateway, word: str) -> None:
    gateway.unregister_tool(word)
    gateway.unregister_resource(f"docs://{word}")
    gateway.unregister_resource_template(f"{word}://{{id}}")
    gateway.unregister_prompt(word)


async def test_open_clients_are_notified_of_registered_code(settings: Settings) -> None:
    """MCP: `list_changed` of every list reaches a session's stream and `subscriptions/listen` when code is registered
    or taken out, and a session's stream that is opened only afterwards (PRG-1, CAP-2).
    """
    gateway = Gateway(settings)
    _register_all(gateway, "first")

    async with hosted(gateway.asgi()) as running:
        await running.create_tenant("acme")
        key = await running.create_key("acme")
        session = await open_session(running, "acme", key)
        wanted = {"tools_list_changed": True, "resources_list_changed": True, "prompts_list_changed": True}
        async with (
            running.client("acme", key) as client,
            client.listen(**wanted) as listening,  # type: ignore[arg-type]  # they are flags
            _standalone(session) as stream,
        ):
            for act, word in ((_register_all, "second"), (_unregister_all, "second")):
                act(gateway, word)
                await _received(stream, set(LISTS))
                with anyio.fail_after(30):
                    received = [await anext(listening) for _ in LISTS]
                assert len({type(one) for one in received}) == len(LISTS)
        _unregister_all(gateway, "first")
        gateway.register_tool("third", ANY, _states("third"))
        async with _standalone(session) as stream:
            await _received(stream, {"notifications/tools/list_changed"})
        listed = (await session.rpc("tools/list"))["result"]["tools"]
        assert [tool["name"] for tool in listed] == ["third"]
