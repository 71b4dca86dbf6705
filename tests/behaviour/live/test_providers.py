"""Programs that connect out, through a whole gateway: their tools appear, run and disappear (DYN-1, DYN-3, DYN-4)."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import pytest

from gateway.app.python.provider import link
from gateway.provide import Provider, ProviderContext, ProviderRefused
from tests.support.gateway import RunningGateway, running_gateway
from tests.support.providers import loop_of
from tests.support.replicas import until as poll
from tests.support.servers import TestServers

PATIENCE_S = 30.0
ALLOW = {"safe": "allow", "moderate": "allow", "dangerous": "allow"}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reconnect soon."""
    monkeypatch.setattr(link, "FIRST_PAUSE_S", 0.05)


@pytest.fixture(scope="module")
async def replicas(servers: TestServers) -> AsyncGenerator[tuple[RunningGateway, RunningGateway]]:
    """Two replicas over one database and one Redis."""
    with servers.database() as database:
        redis_url = servers.own_redis()
        async with (
            running_gateway(database.app_url, redis_url) as first,
            running_gateway(database.app_url, redis_url) as second,
        ):
            yield first, second


async def tenant(gateway: RunningGateway, slug: str) -> tuple[str, str]:
    """A new tenant whose tools need no questions; its keys for clients and for providers."""
    await gateway.create_tenant(slug)
    (await gateway.admin.patch(f"/tenants/{slug}/policy", json=ALLOW)).raise_for_status()
    return await gateway.create_key(slug), await gateway.create_key(slug, "provide", subject="anna")


def make(gateway: RunningGateway, slug: str, key: str, source: str = "laptop") -> Provider:
    """A provider with the tool `double`."""
    provider = Provider(f"{gateway.url}/t/{slug}", key, source=source)

    @provider.tool(annotations={"readOnlyHint": True})
    async def double(number: int, context: ProviderContext) -> dict[str, int]:
        """Double a number."""
        await context.progress(1, 1, "doubled")
        return {"number": 2 * number}

    return provider


async def tools(gateway: RunningGateway, slug: str, key: str) -> set[str]:
    """The names of the tools that a client sees."""
    answer = await gateway.rpc(slug, key, "tools/list")
    return {tool["name"] for tool in answer.json()["result"]["tools"]}


async def call(gateway: RunningGateway, slug: str, key: str, name: str, **arguments: Any) -> dict[str, Any]:
    """The response to a call."""
    found: dict[str, Any] = (await gateway.rpc(slug, key, "tools/call", {"name": name, "arguments": arguments})).json()
    return found


async def until(condition: Callable[[], Any], wanted: object = True) -> None:
    """Wait until the condition has the wanted result."""

    async def is_wanted() -> bool:
        return bool((await condition()) == wanted)

    await poll(is_wanted, seconds=PATIENCE_S)


@asynccontextmanager
async def running(provider: Provider) -> AsyncGenerator[Provider]:
    """The provider for as long as the block runs; its refusal is no failure of the block."""
    try:
        async with provider:
            yield provider
    except ProviderRefused:
        pass


async def test_tools_appear_run_and_disappear(replicas: tuple[RunningGateway, RunningGateway]) -> None:
    """Ours: at both replicas, with equal names distinguished by source and tenant (DYN-1, DYN-3)."""
    first, second = replicas
    key, provide = await tenant(first, "appear")
    other_key, other_provide = await tenant(first, "other")
    async with running(make(first, "appear", provide)) as provider, running(make(second, "other", other_provide)):
        for gateway in replicas:
            await until(partial(tools, gateway, "appear", key), {"double"})
            answer = await call(gateway, "appear", key, "double", number=4)
            assert answer["result"]["structuredContent"] == {"number": 8}
            spelled = await call(gateway, "appear", key, "double", number="4")
            assert spelled["result"]["structuredContent"] == {"number": 8}
        await until(lambda: tools(first, "other", other_key), {"double"})

        @provider.tool()
        def crash() -> None:
            """Crash."""
            raise RuntimeError

        provider.remove("double")
        await until(lambda: tools(second, "appear", key), {"crash"})  # the tenant's own tools need no review
    await until(lambda: tools(first, "other", other_key), set[str]())
    gone = await call(second, "appear", key, "double", number=4)
    assert "error" in gone or gone["result"]["isError"]


async def test_a_source_belongs_to_a_subject_on_all_replicas(
    replicas: tuple[RunningGateway, RunningGateway],
) -> None:
    """Ours: another subject is refused, at any replica; the same subject takes over from another replica (DYN-4)."""
    first, second = replicas
    key, provide = await tenant(first, "owned")
    stranger = await first.create_key("owned", "provide", subject="ben")
    async with running(make(first, "owned", provide)) as older:
        await until(lambda: tools(second, "owned", key), {"double"})
        for gateway in replicas:
            with anyio.fail_after(PATIENCE_S), pytest.raises(ProviderRefused, match="4409"):
                await make(gateway, "owned", stranger).serve()
        async with running(make(second, "owned", provide)) as newer:
            with anyio.fail_after(PATIENCE_S), pytest.raises(ProviderRefused, match="4410"):
                await asyncio.shield(loop_of(older))
            await until(lambda: tools(first, "owned", key), {"double"})
            answer = await call(first, "owned", key, "double", number=1)
            assert answer["result"]["structuredContent"] == {"number": 2}
            assert not loop_of(newer).done()


async def test_a_revoked_key_and_a_removed_tenant_end_their_connections(
    replicas: tuple[RunningGateway, RunningGateway],
) -> None:
    """Ours: at once, at the replica of the connection, whichever replica made the change (TEN-5)."""
    first, second = replicas
    for slug, change in (("revoked", "keys"), ("removed", "tenant")):
        key, provide = await tenant(first, slug)
        async with running(make(second, slug, provide)) as provider:
            await until(lambda: tools(first, slug, key), {"double"})  # noqa: B023  # runs in this round
            keys = (await first.admin.get(f"/tenants/{slug}/keys")).json()["items"]
            found = next(one["id"] for one in keys if "provide" in one["scopes"])
            path = f"/tenants/{slug}/keys/{found}" if change == "keys" else f"/tenants/{slug}"
            (await first.admin.delete(path)).raise_for_status()
            with anyio.fail_after(5), pytest.raises(ProviderRefused, match="401"):
                await asyncio.shield(loop_of(provider))


async def test_a_bad_definition_is_a_notice_of_the_catalogs_rules(
    replicas: tuple[RunningGateway, RunningGateway],
) -> None:
    """Ours: the author learns what the catalog leaves out, and the rest is offered (DYN-2)."""
    first, _ = replicas
    key, provide = await tenant(first, "notices")
    provider = make(first, "notices", provide)

    async def handle(arguments: object, context: ProviderContext) -> None:
        del arguments, context

    wrong: Any = {"name": "wrong", "description": "Wrong.", "inputSchema": {"type": "object", "properties": 7}}
    provider.add_tool(wrong, handle)
    async with running(provider):
        await until(lambda: tools(first, "notices", key), {"double"})
        assert len(provider.notices) == 1
        assert provider.notices[0].startswith("tool wrong: inputSchema")
