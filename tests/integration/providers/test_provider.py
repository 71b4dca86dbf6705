"""The Python client of providers, over real sockets: functions as primitives, calls, reconnects (DYN-4, PRG-1)."""

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any, cast

import anyio
import msgspec
import pytest
from websockets.asyncio.server import ServerConnection, serve

from gateway.app.python.provider import link
from gateway.domain.refusals import LiveSourceDetached, LiveSourceFailed
from gateway.provide import Provider, ProviderContext, ProviderRefused, QuestionRefused, Result, error, image, success
from gateway.upstream.live.agent import attachment as attachments
from gateway.upstream.live.interfaces import LiveAttachment
from tests.support.providers import (
    PATIENCE_S,
    ProviderStand,
    RecordingClient,
    link_of,
    loop_of,
    socket_of,
    wait_for_calls,
)
from tests.support.replicas import until

Call = Callable[..., Awaitable[Any]]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reconnect soon."""
    monkeypatch.setattr(link, "FIRST_PAUSE_S", 0.02)


def make(stand: ProviderStand, source: str = "laptop", key: str | None = None) -> Provider:
    """A provider of the tenant."""
    return Provider(stand.url.replace("ws:", "http:") + "/t/acme", key or stand.keys.make("acme"), source=source)


async def call(attachment: LiveAttachment, name: str, client: RecordingClient | None = None, **arguments: Any) -> Any:
    """The result of a tool."""
    with anyio.fail_after(PATIENCE_S):
        params = {"name": name, "arguments": arguments}
        return await attachment.request("tools/call", params, client or RecordingClient())


async def break_connection(stand: ProviderStand, provider: Provider) -> None:
    """Break the connection as a network does, and wait until the endpoint has noticed."""
    socket = socket_of(provider)
    assert socket is not None
    socket.transport.abort()
    with anyio.fail_after(PATIENCE_S):
        await until(lambda: socket_of(provider) is not socket, seconds=PATIENCE_S, pause=0.001)
        await link_of(provider).is_ready.wait()


async def test_functions_become_tools_with_schemas_and_results(stand: ProviderStand) -> None:
    """Ours: name, docstring and signature are the definition; values become the protocol's results (PRG-1)."""
    provider = make(stand)

    @dataclass
    class Report:
        passed: int

    class Item(msgspec.Struct):
        name: str

    @provider.tool(annotations={"readOnlyHint": True})
    async def build(
        target: Annotated[str, msgspec.Meta(description="The target.")], items: list[Item] | None = None
    ) -> Report:
        """Build it."""
        assert items is None or isinstance(items[0], Item)
        return Report(passed=len(target))

    @provider.tool("say.it", title="Say", description="Says it.")
    def speak(text: str, *, loud: bool = False) -> str:
        return text.upper() if loud else text

    @provider.tool()
    def nothing() -> None:
        """Do nothing."""

    @provider.tool()
    def numbers() -> list[int]:
        """Count."""
        return [1, 2]

    @provider.tool()
    async def fail() -> Result:
        """Fail."""
        return error("NO_DISK", "no disk", {"free": 0})

    @provider.tool()
    def crash() -> None:
        """Crash."""
        raise RuntimeError("secret")

    async def handle(arguments: Any, context: ProviderContext) -> object:
        return success(dict(arguments))

    provider.add_tool(
        {"name": "raw", "description": "Raw.", "inputSchema": {"type": "object", "properties": {}}}, handle
    )

    async with provider:
        attachment = stand.sources.find("laptop")
        found = {one.name: one.definition for one in (await attachment.discover()).primitives}
        assert found["build"] == {
            "name": "build",
            "description": "Build it.",
            "annotations": {"readOnlyHint": True},
            "inputSchema": {
                "type": "object",
                "properties": {
                    "target": {"type": "string", "description": "The target."},
                    "items": {
                        "anyOf": [{"type": "array", "items": {"$ref": "#/$defs/Item"}}, {"type": "null"}],
                        "default": None,
                    },
                },
                "required": ["target"],
                "additionalProperties": False,
                "$defs": {
                    "Item": {
                        "title": "Item",
                        "type": "object",
                        "properties": {"name": {"type": "string"}},
                        "required": ["name"],
                    }
                },
            },
        }
        assert found["say.it"]["title"] == "Say"
        done = await call(attachment, "build", target="docs", items=[{"name": "x"}])
        assert done == {"content": [{"type": "text", "text": '{"passed":4}'}], "structuredContent": {"passed": 4}}
        assert (await call(attachment, "say.it", text="a", loud=True))["content"][0]["text"] == "A"
        assert await call(attachment, "nothing") == {"content": []}
        assert await call(attachment, "numbers") == {"content": [{"type": "text", "text": "[1,2]"}]}
        assert (await call(attachment, "fail"))["_meta"]["error"]["code"] == "NO_DISK"
        assert (await call(attachment, "raw", a=1))["structuredContent"] == {"a": 1}
        wrong = await call(attachment, "build", target=7)
        assert wrong["isError"] is True
        assert wrong["_meta"]["error"]["code"] == "ARGUMENTS_INVALID"
        with pytest.raises(LiveSourceFailed) as crashed:
            await call(attachment, "crash")
        assert "secret" not in str(crashed.value)


async def test_resources_and_prompts(stand: ProviderStand) -> None:
    """Ours: resources, templates and prompts are functions, too (DYN-4)."""
    provider = make(stand)

    @provider.resource("notes://today")
    def today() -> str:
        """Today's notes."""
        return "buy milk"

    @provider.resource("notes://{day}", mime_type="application/octet-stream")
    async def of_day(uri: str) -> bytes:
        return uri.encode()

    @provider.prompt()
    def review(path: str, style: str = "short") -> str:
        """Review a file."""
        return f"review {path}, {style}"

    @provider.prompt("talk")
    async def talk(context: ProviderContext) -> list[dict[str, object]]:
        return [{"role": "assistant", "content": {"type": "text", "text": "hi"}}]

    async with provider:
        attachment = stand.sources.find("laptop")
        found = {one.name: one.definition for one in (await attachment.discover()).primitives}
        assert set(found) == {"notes://today", "notes://{day}", "review", "talk"}
        assert found["review"]["arguments"] == [
            {"name": "path", "required": True},
            {"name": "style", "required": False},
        ]

        async def ask(method: Any, **params: Any) -> Any:
            return await attachment.request(method, params, RecordingClient())

        read = await ask("resources/read", uri="notes://today")
        assert read["contents"] == [{"uri": "notes://today", "mimeType": "text/plain", "text": "buy milk"}]
        assert (await ask("resources/read", uri="notes://monday"))["contents"][0]["blob"] == "bm90ZXM6Ly9tb25kYXk="
        got = await ask("prompts/get", name="review", arguments={"path": "a.py"})
        assert got["messages"][0]["content"]["text"] == "review a.py, short"
        assert (await ask("prompts/get", name="talk"))["messages"][0]["role"] == "assistant"
        with pytest.raises(LiveSourceFailed):
            await ask("resources/read", uri="other://x")
        assert await ask("resources/subscribe", uri="notes://today") == {}
        await provider.updated("notes://today")
        await stand.sources.wait_for_update("notes://today")


async def test_progress_logs_and_questions_from_coroutines_and_threads(stand: ProviderStand) -> None:
    """Ours: the context's messages reach the client of the call (DYN-4)."""
    provider, client = make(stand), RecordingClient(answer={"action": "accept", "content": {"sure": True}})

    @provider.tool()
    async def careful(context: ProviderContext) -> bool:
        """Be careful."""
        await context.progress(1, 2, "half")
        await context.log("info", {"a": 1}, "tool")
        reply = await context.ask("sure?", {"type": "object", "properties": {"sure": {"type": "boolean"}}})
        return reply.is_accepted and bool(reply.content["sure"])

    @provider.tool()
    def plain(context: ProviderContext) -> str:
        """Be plain."""
        context.wait(context.progress(3))
        try:
            return context.wait(context.ask("sure?")).action
        except QuestionRefused as refused:
            return str(refused)

    async with provider:
        attachment = stand.sources.find("laptop")
        assert (await call(attachment, "careful", client))["content"][0]["text"] == "true"
        assert (await call(attachment, "plain", client))["content"][0]["text"] == "accept"
        client.answer = LiveSourceFailed("nobody there")
        assert (await call(attachment, "plain", client))["content"][0]["text"] == "nobody there"
    assert client.received[:2] == [("progress", 1, 2, "half"), ("log", "info", {"a": 1}, "tool")]


async def test_a_cancelled_call_cancels_the_coroutine_and_marks_the_thread(stand: ProviderStand) -> None:
    """MCP: cancellation reaches the function (DYN-4)."""
    provider = make(stand)
    began, ended, seen = asyncio.Event(), asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    @provider.tool()
    async def wait_long() -> None:
        """Wait."""
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    @provider.tool()
    def spin(context: ProviderContext) -> None:
        """Spin."""
        loop.call_soon_threadsafe(began.set)
        while not context.cancelled:
            pass
        seen.set()

    async with provider:
        attachment = stand.sources.find("laptop")
        for name in ("wait_long", "spin"):
            began.clear()
            running = asyncio.ensure_future(call(attachment, name))
            await began.wait()
            running.cancel()
        with anyio.fail_after(PATIENCE_S):
            await ended.wait()
            assert await asyncio.to_thread(seen.wait, PATIENCE_S)


async def test_a_call_survives_a_broken_connection(stand: ProviderStand) -> None:
    """Ours: the client connects again by itself, and sends what ended meanwhile (DYN-4)."""
    provider, go = make(stand), asyncio.Event()

    @provider.tool()
    async def slow() -> str:
        """Be slow."""
        await go.wait()
        return "done"

    async with provider:
        attachment = stand.sources.find("laptop")
        before, during = (asyncio.ensure_future(call(attachment, "slow")) for _ in range(2))
        await wait_for_calls(provider, 2)
        for _ in range(2):
            await break_connection(stand, provider)
        assert stand.sources.find("laptop") is attachment
        assert stand.sources.changes["laptop"] == 1
        go.set()
        assert [(await one)["content"][0]["text"] for one in (before, during)] == ["done", "done"]


async def test_changes_during_a_reconnect_are_registered_after_it(stand: ProviderStand) -> None:
    """Ours: a resumed attachment offers what the program offers, not what it offered before (DYN-2, DYN-4)."""
    provider = make(stand)
    provider.tool("first")(anyio.current_time)
    async with provider:
        attachment = stand.sources.find("laptop")
        link_of(provider).is_ready.clear()  # as after a broken connection
        provider.tool("second")(anyio.current_time)
        provider.remove("first")
        await break_connection(stand, provider)
        assert stand.sources.find("laptop") is attachment
        assert [one.name for one in (await attachment.discover()).primitives] == ["second"]
        assert stand.sources.changes["laptop"] == 2


async def test_changes_while_a_registration_is_on_its_way_are_registered_after_it(stand: ProviderStand) -> None:
    """Ours: no change is lost between two registrations (DYN-2)."""
    provider = make(stand)
    provider.tool("tool0")(anyio.current_time)
    async with provider:
        for number in range(1, 6):
            provider.tool(f"tool{number}")(anyio.current_time)
            await asyncio.sleep(0)  # the task that registers begins
        await stand.sources.wait_for_change("laptop", 2)
        await until(lambda: vars(link_of(provider))["_registered"] == 7, seconds=PATIENCE_S, pause=0.001)
        assert len((await stand.sources.find("laptop").discover()).primitives) == 6


async def test_results_of_a_lost_attachment_are_dropped(stand: ProviderStand, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: after the time for a resume the provider registers again, and its old calls stop (DYN-4)."""
    monkeypatch.setattr(attachments, "RESUME_S", 0.0)
    monkeypatch.setattr(link, "FIRST_PAUSE_S", 0.3)
    provider, stopped = make(stand), asyncio.Event()

    @provider.tool()
    async def slow() -> None:
        """Be slow."""
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async with provider:
        attachment = stand.sources.find("laptop")
        running = asyncio.ensure_future(call(attachment, "slow"))
        await wait_for_calls(provider)
        await break_connection(stand, provider)
        with pytest.raises(LiveSourceDetached):
            await running
        with anyio.fail_after(PATIENCE_S):
            await stopped.wait()
        assert stand.sources.find("laptop") is not attachment
        assert (await stand.sources.find("laptop").discover()).primitives


async def test_tools_are_added_and_removed_while_connected(stand: ProviderStand) -> None:
    """Ours: changes of one turn are one registration; faults are notices (DYN-2, DYN-4)."""
    provider = make(stand)

    @provider.tool()
    def first() -> None:
        """First."""

    async with provider:

        @provider.tool()
        def second() -> None:
            """Second."""

        provider.remove("first")
        provider.add_tool({"name": "bad", "inputSchema": {"type": "object", "properties": {}}}, anyio.sleep)  # type: ignore[typeddict-item, arg-type]
        await stand.sources.wait_for_change("laptop", 2)
        found = await stand.sources.find("laptop").discover()
        assert [one.name for one in found.primitives] == ["second"]
        await until(lambda: bool(provider.notices), seconds=PATIENCE_S, pause=0.001)
        assert provider.notices == ("tool bad: description is missing",)
        with pytest.raises(KeyError):
            provider.remove("first")
    await stand.sources.wait_until_gone("laptop")


@pytest.mark.refill
async def test_a_result_that_is_too_large_fails_the_call_only(stand: ProviderStand) -> None:
    """Ours: the client keeps within the limits of the gateway (TEN-5)."""
    provider = make(stand)

    @provider.tool()
    def large() -> Result:
        """Be large."""
        return image(bytes(4 * 1024 * 1024))

    @provider.tool()
    def nearly() -> str:
        """Be nearly too large."""
        return "x" * (4 * 1024 * 1024 - 200)

    async with provider:
        attachment = stand.sources.find("laptop")
        with pytest.raises(LiveSourceFailed):
            await call(attachment, "large")
        assert len((await call(attachment, "nearly"))["content"][0]["text"]) > 4_000_000


async def test_a_message_that_the_gateway_would_refuse_fails_the_call_only(stand: ProviderStand) -> None:
    """Ours: results, logs and questions keep within the rules of the gateway's parser; the connection stays (TEN-5)."""
    provider = make(stand)
    values: dict[str, object] = {
        "containers": [[]] * 20_001,
        "values": [0] * 100_001,
        "digits": 10**700,
        "more digits": 10**5000,
        "depth": msgspec.json.decode("[" * 70 + "]" * 70),
        "bytes": "x" * 4 * 1024 * 1024,
        "surrogate": "\ud800",
    }

    @provider.tool()
    async def give(what: str, context: ProviderContext, how: str) -> Result:
        """Give it."""
        if how == "log":
            await context.log("info", {"value": values[what]})
        elif how == "ask":
            await context.ask("sure?", {"type": "object", "properties": {"value": {"default": values[what]}}})
        return success({"value": values.get(what)})

    async with provider:
        attachment, socket = stand.sources.find("laptop"), socket_of(provider)
        for what in values:
            for how in ("return", "log", "ask"):
                with pytest.raises(LiveSourceFailed):
                    await call(attachment, "give", what=what, how=how)
        assert (await call(attachment, "give", what="none", how="return"))["structuredContent"] == {"value": None}
        assert socket_of(provider) is socket


async def test_a_call_at_the_limits_of_the_gateway_is_served(stand: ProviderStand) -> None:
    """Ours: the gateway's additions to a message of a client do not make it too large for the program (TEN-5)."""
    provider = make(stand)

    @provider.tool()
    async def count(items: list[Any]) -> int:
        """Count."""
        return len(items)

    async with provider:
        attachment, socket = stand.sources.find("laptop"), socket_of(provider)
        for items in cast("list[list[object]]", ([[]] * 20_000, [0] * 100_000)):
            assert (await call(attachment, "count", items=items))["content"][0]["text"] == str(len(items))
        assert socket_of(provider) is socket


async def test_a_gateway_that_sends_nonsense_is_left_and_tried_again() -> None:
    """Ours: an unreadable message ends the connection, not the program (DYN-4)."""
    nonsense = iter(("{", "[]", "7", "[" * 100_000, '{"id": []}'))
    is_over = asyncio.Event()

    async def answer(connection: ServerConnection) -> None:
        await connection.recv()
        text = next(nonsense, None)
        if text is None:
            is_over.set()
        else:
            await connection.send(text)
        await connection.wait_closed()

    async with serve(answer, "127.0.0.1", 0) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        running = asyncio.ensure_future(Provider(f"http://127.0.0.1:{port}/t/acme", "key", source="laptop").serve())
        with anyio.fail_after(PATIENCE_S):
            await asyncio.wait({running, asyncio.ensure_future(is_over.wait())}, return_when=asyncio.FIRST_COMPLETED)
        assert not running.done()
        running.cancel()


async def test_a_refused_offer_is_registered_again() -> None:
    """Ours: a gateway that is too busy to check definitions has them after a reconnect (DYN-4)."""
    registered = asyncio.Event()
    connections: list[ServerConnection] = []

    async def answer(connection: ServerConnection) -> None:
        connections.append(connection)
        result: dict[str, object] = {"resume": "r", "resumed": False, "calls": [], "limits": {"message_bytes": 1 << 20}}
        async for text in connection:
            message = json.loads(text)
            reply: dict[str, object] = {"result": result}
            if message["method"] == "provider/register" and len(connections) == 1:
                reply = {"error": {"code": -32603, "message": "busy"}}
            await connection.send(json.dumps({"jsonrpc": "2.0", "id": message["id"], **reply}))
            if message["method"] == "provider/register" and len(connections) == 2:
                registered.set()

    async with serve(answer, "127.0.0.1", 0) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        running = asyncio.ensure_future(Provider(f"http://127.0.0.1:{port}/t/acme", "key", source="laptop").serve())
        with anyio.fail_after(PATIENCE_S):
            await registered.wait()
        assert connections[0].close_code == 1013
        assert not running.done()
        running.cancel()


async def test_the_key_goes_through_no_proxy_of_the_environment(
    stand: ProviderStand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: a proxy that was set for web pages does not receive the key (TEN-5)."""
    for name in ("https_proxy", "http_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    provider = make(stand)
    provider.tool()(anyio.current_time)
    with anyio.fail_after(PATIENCE_S):
        async with provider:
            assert (await stand.sources.find("laptop").discover()).primitives


async def test_refusals_for_good_are_raised(stand: ProviderStand) -> None:
    """Ours: a wrong key, a foreign name and a takeover end the program's loop; it does not try on (DYN-4)."""
    key = stand.keys.make("acme")
    with anyio.fail_after(PATIENCE_S):
        with pytest.raises(ProviderRefused, match="401"):
            await make(stand, key="mcpg_live_wrong").serve()
        with pytest.raises(ProviderRefused, match="4410"):
            async with make(stand, key=key) as provider:
                with pytest.raises(ProviderRefused, match="4409"):
                    await make(stand).serve()
                with pytest.raises(ProviderRefused, match="4409"):
                    async with make(stand):
                        pass
                with pytest.raises(ProviderRefused, match="4400"):
                    await make(stand, source="No Name").serve()
                async with make(stand, key=key):
                    await asyncio.wait({loop_of(provider)})


async def test_a_revoked_key_ends_the_loop_after_one_more_try(stand: ProviderStand) -> None:
    """Ours: 4401 may be a changed key; the next handshake decides (TEN-5)."""
    key = stand.keys.make("acme")
    provider = make(stand, key=key)
    with anyio.fail_after(PATIENCE_S), pytest.raises(ProviderRefused, match="401"):
        async with provider:
            stand.credentials.forget(stand.keys.revoke(key))
            stand.providers.recheck_all()
            await asyncio.wait({loop_of(provider)})


@pytest.mark.parametrize("url", ["ftp://x/t/acme", "http:///t/acme", "http://x/acme", "nothing"])
def test_an_address_that_is_no_tenants_is_refused(url: str) -> None:
    """Ours: a wrong address is found before a connection is tried (PRG-1)."""
    with pytest.raises(ValueError, match="the URL must be a tenant's"):
        Provider(url, "key", source="x")


def test_signatures_without_a_schema_are_refused() -> None:
    """Ours: a function that cannot be called by name and type is found where it is declared (PRG-1)."""
    provider = Provider("http://x/t/acme/mcp", "key", source="x")

    def variadic(*values: str) -> None: ...
    def positional(value: str, /) -> None: ...
    def without_schema(value: threading.Event) -> None: ...

    for function in (variadic, positional, without_schema):
        with pytest.raises(TypeError):
            provider.tool()(function)
