"""A gateway inside a program: primitives that the program registers, before it serves and while it does."""

import json
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import anyio
import anyio.to_thread
import pytest
from mcp_types import ElicitResult
from pydantic import BaseModel, Field, create_model

from gateway.app.readiness import Readiness
from gateway.embed import (
    Completing,
    Contents,
    Context,
    ExtraPrompt,
    ExtraResource,
    ExtraTool,
    Family,
    Gateway,
    Messages,
    Result,
    Settings,
    ToolRegistry,
    ToolShape,
    error,
    success,
    text,
)
from tests.behaviour.primitives.test_kinds import era
from tests.support.forks import Forked
from tests.support.gateway import META, OPEN_POLICY, OPERATOR_KEY, SECRET_KEY, RunningGateway
from tests.support.handshake import open_session
from tests.support.hosting import hosted
from tests.support.replicas import Mode
from tests.support.serving import http_client
from tests.support.tasks import CAPABILITIES
from tests.support.upstream import recording_upstream

ANY: ToolShape = {"description": "Does something.", "inputSchema": {"type": "object", "properties": {}}}
Settle = Callable[..., Settings]


@pytest.fixture
def settle(database_url: str, redis_url: str) -> Settle:
    """Settings of a gateway with servers of its own."""

    def made(**more: Any) -> Settings:
        return Settings.model_validate(
            {
                "database_url": database_url,
                "redis_url": redis_url,
                "secret_keys": (SECRET_KEY,),
                "operator_key": OPERATOR_KEY,
                "tenant_policy": OPEN_POLICY,
                **more,
            }
        )

    return made


@asynccontextmanager
async def _serving(gateway: Gateway) -> AsyncGenerator[tuple[RunningGateway, str]]:
    """The gateway while it serves, and a key of the tenant `acme`."""
    async with hosted(gateway.asgi()) as running:
        await running.create_tenant("acme")
        yield running, await running.create_key("acme")


async def _call(running: RunningGateway, key: str, name: str, slug: str = "acme", **arguments: Any) -> Any:
    return (await running.rpc(slug, key, "tools/call", {"name": name, "arguments": arguments})).json()


def echo(context: Context) -> Result:
    """Returns its argument."""
    return success({"tenant": context.tenant, "subject": context.principal.subject, **context.arguments})


@era
async def test_primitives_of_a_program_are_listed_and_run(settle: Settle, era: Mode) -> None:
    """Ours: tools, resources, templates and prompts by method or decorator, plain and async (PRG-1)."""
    gateway = Gateway(settle())

    @gateway.tool("double", {"description": "Doubles.", "inputSchema": {"type": "object", "properties": {"n": {}}}})
    async def double(context: Context) -> Result:
        return success({"n": 2 * context.arguments["n"]})

    @gateway.resource("docs://readme", {"name": "readme", "mimeType": "text/plain"})
    def readme(context: Context) -> str:
        return f"Hello {context.tenant}"

    @gateway.resource_template("rows://{id}", {"name": "row", "mimeType": "application/json"})
    async def row(context: Context) -> Contents:
        content = {"uri": context.uri or "", "mimeType": "application/json", "text": json.dumps(context.arguments)}
        return Contents(contents=(content,))

    def suggest(completing: Completing) -> list[str]:
        return [each for each in ("red", "blue") if each.startswith(completing.value)]

    @gateway.prompt("paint", {"arguments": [{"name": "color", "required": True}]}, complete=suggest)
    def paint(context: Context) -> str:
        return f"Paint it {context.arguments['color']}"

    gateway.register_tool("echo", ANY, echo)
    async with _serving(gateway) as (running, key), running.client("acme", key, _mode(era)) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == {"double", "echo"}
        assert (await client.call_tool("double", {"n": 21})).structured_content == {"n": 42}
        reported = (await client.call_tool("echo")).structured_content
        (read,) = (await client.read_resource("docs://readme")).contents
        (made,) = (await client.read_resource("rows://a%20b")).contents
        (message,) = (await client.get_prompt("paint", {"color": "red"})).messages
        assert reported is not None
        assert reported["tenant"] == "acme"
        assert getattr(read, "text", None) == "Hello acme"
        assert json.loads(getattr(made, "text", "{}")) == {"id": "a b"}
        assert getattr(message.content, "text", None) == "Paint it red"
    assert double.__name__ == "double"
    assert {readme.__name__, row.__name__, paint.__name__} == {"readme", "row", "paint"}


def _mode(era: Mode) -> Any:
    return era


class Color(BaseModel):
    """A color of pydantic."""

    name: str
    shades: list["Color"] = []


def _bounded(n: Annotated[int, Field(ge=1)]) -> int:
    return n


_Outer = create_model("Outer", color=(create_model("Color", value=(int, ...)), ...))


def _two_colors(a: Color, b: _Outer) -> str:  # type: ignore[valid-type]  # made at run time
    return f"{a}{b}"


@dataclass
class Point:
    """A point of two numbers."""

    x: int
    y: int = 0


async def test_a_typed_function_is_its_own_definition(settle: Settle) -> None:
    """Ours: names, docstrings, hints, defaults, dataclasses and models are the definition, and arguments have their
    types (PRG-1).
    """
    gateway = Gateway(settle())

    @gateway.tool
    def add(a: int, b: Literal[1, 2] = 2) -> int:
        """Add two numbers."""
        return a + b

    @gateway.tool(safety="safe", annotations={"readOnlyHint": True})
    async def mix(color: Color, at: Point, context: Context) -> Color:
        """Mix."""
        return Color(name=f"{color.name}/{at.x + at.y}/{context.tenant}", shades=color.shades)

    @gateway.resource("notes://{day}", mime_type="application/json")
    def note(day: int) -> dict[str, int]:
        """The note of a day."""
        return {"day": day + 1}

    @gateway.resource("docs://typed")
    async def manual() -> str:
        """The manual."""
        return "read me"

    @gateway.prompt
    def review(text: str, tone: str = "kind") -> str:
        """Review a text."""
        return f"{tone}: {text}"

    with pytest.raises(TypeError, match="parameters need names"):
        gateway.tool(print)
    with pytest.raises(TypeError, match=r"msgspec\.Meta"):
        gateway.tool(_bounded)
    with pytest.raises(TypeError, match="two types of the parameters are called Color"):
        gateway.tool(cast("Callable[..., str]", _two_colors))
    async with _serving(gateway) as (running, key), running.client("acme", key, "auto") as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert tools["add"].description == "Add two numbers."
        assert tools["add"].input_schema["required"] == ["a"]
        assert tools["add"].input_schema["properties"]["b"] == {"enum": [1, 2], "default": 2}
        assert set(tools["mix"].input_schema["$defs"]) == {"Color", "Point"}
        assert getattr((await client.call_tool("add", {"a": 40})).content[0], "text", None) == "42"
        mixed = await client.call_tool("mix", {"color": {"name": "red", "shades": [{"name": "x"}]}, "at": {"x": 1}})
        assert mixed.structured_content == {"name": "red/1/acme", "shades": [{"name": "x", "shades": []}]}
        assert (await client.call_tool("add", {"a": "many"})).is_error
        (read,) = (await client.read_resource("notes://6")).contents
        assert json.loads(getattr(read, "text", "")) == {"day": 7}
        (text_read,) = (await client.read_resource("docs://typed")).contents
        assert getattr(text_read, "text", "") == "read me"
        (message,) = (await client.get_prompt("review", {"text": "a"})).messages
        assert getattr(message.content, "text", None) == "kind: a"
    assert add(1) == 3


async def test_a_registry_and_extras_are_served_beside_registered_primitives(settle: Settle) -> None:
    """Ours: three ways in, one list out (PRG-2, TDF-3)."""
    registry = ToolRegistry()
    registry.register({"name": "of_registry", **ANY}, echo)
    gateway = Gateway(
        settle(),
        registry=registry,
        extra_tools=[ExtraTool(definition={"name": "of_extras", **ANY}, handler=echo)],
        extra_resources=[ExtraResource(definition={"uri": "docs://x", "name": "x"}, handler=lambda _: b"\x00")],
        extra_prompts=[ExtraPrompt(definition={"name": "p"}, handler=lambda _: Messages(messages=()))],
    )
    registry.register({"name": "of_registry_later", **ANY}, echo)
    gateway.register_tool("of_method", ANY, echo)

    async with _serving(gateway) as (running, key):
        listed = (await running.rpc("acme", key, "tools/list")).json()["result"]["tools"]
        assert [tool["name"] for tool in listed] == ["of_extras", "of_method", "of_registry", "of_registry_later"]
        await anyio.to_thread.run_sync(lambda: registry.register({"name": "while_served", **ANY}, echo))
        assert (await _call(running, key, "while_served"))["result"]["structuredContent"]["tenant"] == "acme"
        assert (await _call(running, key, "of_registry"))["result"]["structuredContent"]["tenant"] == "acme"
        read = await running.rpc("acme", key, "resources/read", {"uri": "docs://x"}, mcp_name="docs://x")
        assert read.json()["error"]["data"]["code"] == "call.handler_failed"  # bytes, and no MIME type anywhere


async def test_primitives_registered_while_serving_reach_open_clients(settle: Settle) -> None:
    """Ours: listeners are notified, sessions call it, and an unregistered one is gone (PRG-1, CAP-2)."""
    gateway = Gateway(settle())
    gateway.register_tool("first", ANY, echo)

    async with _serving(gateway) as (running, key):
        session = await open_session(running, "acme", key)
        async with running.client("acme", key) as client, client.listen(tools_list_changed=True) as received:
            gateway.register_tool("second", ANY, lambda _: "one")
            with anyio.fail_after(30):
                await anext(received)
            assert [tool.name for tool in (await client.list_tools(cache_mode="refresh")).tools] == ["first", "second"]
            call: dict[str, Any] = {"name": "second", "arguments": {}}
            assert (await session.rpc("tools/call", call))["result"]["content"][0]["text"] == "one"

            gateway.unregister("second")
            gateway.register_tool("second", ANY, lambda _: "two")
            assert (await session.rpc("tools/call", call))["result"]["content"][0]["text"] == "two"

            gateway.unregister("second", family=Family.TOOL)
            assert (await session.rpc("tools/call", call))["error"]["code"] == -32602


async def test_a_thread_may_register_too(settle: Settle) -> None:
    """Ours: registering is safe from any thread (PRG-1)."""
    gateway = Gateway(settle())

    async with _serving(gateway) as (running, key), running.client("acme", key) as client:
        async with client.listen(tools_list_changed=True) as received:
            await anyio.to_thread.run_sync(lambda: gateway.register_tool("late", ANY, echo))
            with anyio.fail_after(30):
                await anext(received)
        assert "result" in await _call(running, key, "late")


async def test_tools_may_be_for_some_tenants_only(settle: Settle) -> None:
    """Ours: a primitive that was registered for one tenant does not exist for another (PRG-1, TEN-5)."""
    gateway = Gateway(settle())
    gateway.register_tool("everybodys", ANY, echo)
    gateway.register_tool("acmes", ANY, echo, tenants=["acme"])
    gateway.register_prompt("acmes", {}, lambda _: "x", tenants={"acme"})

    async with _serving(gateway) as (running, key):
        await running.create_tenant("globex")
        other = await running.create_key("globex")
        for slug, owner, names in (("acme", key, ["acmes", "everybodys"]), ("globex", other, ["everybodys"])):
            listed = (await running.rpc(slug, owner, "tools/list")).json()["result"]["tools"]
            assert [tool["name"] for tool in listed] == names
        assert (await _call(running, other, "acmes", "globex"))["error"]["code"] == -32602
        assert (await running.rpc("globex", other, "prompts/list")).json()["error"]["code"] == -32601


async def test_a_handler_may_use_its_context(settle: Settle) -> None:
    """Ours: it reads, calls and fetches as its principal, through all gates (PRG-1, TEN-5)."""
    async with recording_upstream() as allowed, recording_upstream() as private:
        allowed.body = b'{"n":7}'
        gateway = Gateway(settle(egress_allow=(allowed.authority,)))
        gateway.register_resource("docs://x", {"name": "x", "mimeType": "text/plain"}, lambda _: "read")

        @gateway.tool("all", ANY)
        async def use_all(context: Context) -> Result:
            read = (await context.read_resource("docs://x")).contents[0]["text"]
            called = (await context.invoke("echo", {"a": 1}))["structuredContent"]["a"]
            fetched = (await context.http.get(f"{allowed.url}/n")).json()["n"]
            return success({"read": read, "called": called, "fetched": fetched, "cancelled": context.cancelled})

        @gateway.tool("private", ANY)
        async def reach_inside(context: Context) -> Result:
            return text((await context.http.get(private.url)).text)

        gateway.register_tool("echo", ANY, echo)
        async with _serving(gateway) as (running, key):
            done = await _call(running, key, "all")
            refused = await _call(running, key, "private")

        assert done["result"]["structuredContent"] == {"read": "read", "called": 1, "fetched": 7, "cancelled": False}
        assert refused["result"]["_meta"]["gateway/error"]["code"] == "upstream.egress_denied"
        assert private.seen == []


@era
async def test_a_handler_may_ask_the_user(settle: Settle, era: Mode) -> None:
    """MCP: a form through the client, in a round of its own or on the stream of the call (PRG-1)."""
    gateway = Gateway(settle())
    ran: list[str] = []

    @gateway.tool("greet", ANY)
    async def greet(context: Context) -> Result:
        ran.append("begun")
        schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
        reply = await context.ask("Who are you?", schema)
        return text(f"Hello {reply.content['name']}" if reply.is_accepted else "Hello nobody")

    async def answer(_: Any, params: Any) -> ElicitResult:
        assert params.message == "Who are you?"
        return ElicitResult(action="accept", content={"name": "Bo"})

    async with _serving(gateway) as (running, key):
        async with running.client("acme", key, _mode(era), elicitation_callback=answer) as client:
            (reported,) = (await client.call_tool("greet")).content
        assert getattr(reported, "text", None) == "Hello Bo"


async def test_a_client_without_forms_gets_a_reason(settle: Settle) -> None:
    """MCP: -32021 with what is missing in 2026-07-28, an error result before (SRV-1)."""
    gateway = Gateway(settle())

    @gateway.tool("greet", ANY)
    async def greet(context: Context) -> Result:
        return text((await context.ask("Who are you?")).action)

    @gateway.tool("page", ANY)
    async def page(context: Context) -> Result:
        return text((await context.ask_url("Sign in.", "https://example.com")).action)

    async with _serving(gateway) as (running, key):
        modern = await running.rpc("acme", key, "tools/call", {"name": "greet", "arguments": {}})
        paged = await running.rpc("acme", key, "tools/call", {"name": "page", "arguments": {}})
        capabilities: dict[str, Any] = {"_meta": {**META, CAPABILITIES: {"elicitation": {"url": {}}}}}
        formless = await running.rpc("acme", key, "tools/call", {"name": "greet", "arguments": {}, **capabilities})
        session = await open_session(running, "acme", key)
        older = await session.rpc("tools/call", {"name": "greet", "arguments": {}})

    assert (modern.status_code, modern.json()["error"]["code"]) == (400, -32021)
    assert modern.json()["error"]["data"]["requiredCapabilities"] == {"elicitation": {}}
    assert paged.json()["error"]["data"]["requiredCapabilities"] == {"elicitation": {"url": {}}}
    assert formless.json()["error"]["data"]["requiredCapabilities"] == {"elicitation": {"form": {}}}
    assert older["result"]["isError"] is True
    assert older["result"]["_meta"]["gateway/error"]["code"] == "call.capability_missing"


async def test_a_handler_that_fails_costs_one_call(settle: Settle) -> None:
    """Ours: nothing of a failure but a correlation id reaches the client, and the next call is served (CAL-4)."""
    gateway = Gateway(settle())

    @gateway.tool("broken", ANY)
    async def broken(context: Context) -> Result:
        raise RuntimeError(f"secret of {context.tenant}")

    @gateway.tool("shapeless", ANY)
    def shapeless(context: Context) -> Any:
        return {context.tenant, 7}

    gateway.register_resource("docs://broken", {"name": "x", "mimeType": "text/plain"}, broken)  # type: ignore[arg-type]  # wrong on purpose
    gateway.register_prompt("broken", {}, broken)  # type: ignore[arg-type]  # as above
    gateway.register_tool("told", ANY, lambda _: error("NO_MORE", "There is no more.", {"left": 0}))
    refusal = {"content": [{"type": "text", "text": "no"}], "isError": True}
    gateway.register_tool("refuses", ANY, lambda _: refusal)

    async with _serving(gateway) as (running, key):
        for name in ("broken", "shapeless"):
            result = (await _call(running, key, name))["result"]
            assert result["isError"] is True
            assert "secret" not in json.dumps(result)
            assert result["_meta"]["gateway/error"]["correlation_id"]
            assert result["_meta"]["gateway/error"]["code"] == "call.handler_failed"
        refused = (await _call(running, key, "refuses"))["result"]
        assert {name: refused[name] for name in refusal} == refusal
        assert "structuredContent" not in refused
        read = await running.rpc("acme", key, "resources/read", {"uri": "docs://broken"}, mcp_name="docs://broken")
        got = await running.rpc("acme", key, "prompts/get", {"name": "broken"})
        for answer in (read, got):
            assert "secret" not in answer.text
            assert answer.json()["error"]["data"]["correlation_id"]
        notified = (await _call(running, key, "told"))["result"]
        assert notified["_meta"]["error"] == {"code": "NO_MORE", "message": "There is no more.", "data": {"left": 0}}


async def test_the_application_may_be_started_again(settle: Settle) -> None:
    """Ours: a lifespan that ended may begin again, with the registered primitives (SRV-3)."""
    gateway = Gateway(settle())
    gateway.register_tool("echo", ANY, echo)
    app = gateway.asgi()

    async with hosted(app) as running:
        await running.create_tenant("acme")
        key = await running.create_key("acme")
    async with hosted(app) as running:
        assert "result" in await _call(running, key, "echo")


async def test_without_its_lifespan_the_application_names_the_fault(settle: Settle) -> None:
    """Ours: a server that sends no lifespan events gets an error, not a broken gateway (SRV-3)."""
    with pytest.raises(RuntimeError, match="lifespan"):
        await Gateway(settle()).asgi()({"type": "http"}, _never, _never)


async def _never(*_: Any) -> Any:
    raise AssertionError


PROGRAM = """
from gateway.embed import Gateway, Running, success

gateway = Gateway()


@gateway.tool("echo", {"description": "Says it.", "inputSchema": {"type": "object", "properties": {}}})
def echo(context):
    return success({"tenant": context.tenant})


async def main():
    async def ready(running: Running) -> None:
        print(running.url, flush=True)

    await gateway.serve(ready=ready)


if __name__ == "__main__":
    import asyncio

    asyncio.run(main())
"""


async def test_a_program_serves_until_sigterm(database_url: str, redis_url: str, tmp_path: Path) -> None:
    """Ours: `serve()` is a whole gateway: it answers, and ends with 0 on SIGTERM (SRV-3, PRG-1)."""
    child = await anyio.to_thread.run_sync(_launch, database_url, redis_url, tmp_path)
    assert child.stdout is not None
    try:
        with anyio.fail_after(30):
            url = (await anyio.to_thread.run_sync(child.stdout.readline)).decode().strip()
        session = await _first_call(url)
        assert session == {"tenant": "acme"}
        child.terminate()
        assert await anyio.to_thread.run_sync(child.wait, 30) == 0
    finally:
        await anyio.to_thread.run_sync(child.end)


def _launch(database_url: str, redis_url: str, folder: Path) -> Forked:
    """The program, as `python -m` starts it."""
    (folder / "embedding_program.py").write_text(PROGRAM)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GATEWAY_")} | {
        "GATEWAY_DATABASE_URL": database_url,
        "GATEWAY_REDIS_URL": redis_url,
        "GATEWAY_SECRET_KEYS": SECRET_KEY,
        "GATEWAY_OPERATOR_KEY": OPERATOR_KEY,
        "GATEWAY_TENANT_POLICY": ",".join(OPEN_POLICY),
        "GATEWAY_PORT": "0",
        "PYTHONPATH": str(folder),
    }
    return Forked([], environment, module="embedding_program", folder=folder)


async def _first_call(url: str) -> Any:
    """Answer of the tool of a gateway that was just started to a new tenant."""
    bearer = {"authorization": f"Bearer {OPERATOR_KEY}"}
    async with (
        http_client(base_url=f"{url}/admin/v1", headers=bearer) as admin,
        http_client(base_url=url) as http,
    ):
        running = RunningGateway(url, admin, http, Readiness())
        await running.create_tenant("acme")
        return (await _call(running, await running.create_key("acme"), "echo"))["result"]["structuredContent"]
