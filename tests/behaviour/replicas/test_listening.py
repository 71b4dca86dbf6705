"""Listen streams over two replicas: a change at one is notified by the other, with or without the event."""

from collections.abc import AsyncIterable
from contextlib import AsyncExitStack

import anyio
import pytest
from mcp.client.subscriptions import SubscriptionLost

from tests.behaviour.replicas.conftest import Acme
from tests.support.documents import many
from tests.support.replicas import tool_names

PATIENCE_S = 20
"""An event is there within a second, what is found out after five; the machine may be busy."""


async def _listens(stream: AsyncIterable[object]) -> None:
    with anyio.fail_after(PATIENCE_S):
        async for event in stream:
            assert type(event).__name__ == "ToolsListChanged"
            return


async def _change(acme: Acme) -> None:
    await acme.replicas.a.gateway.import_document(acme.slug, many(acme.upstream.url, 1), name="more")


async def test_a_change_at_a_is_notified_by_b(acme: Acme) -> None:
    """Ours: a stream receives the commits of every replica (CAP-2)."""
    async with (
        acme.replicas.client(acme.slug, acme.key, to=acme.replicas.b) as client,
        client.listen(tools_list_changed=True) as stream,
    ):
        await _change(acme)
        await _listens(stream)
        assert "op_0000" in await tool_names(client)


async def test_a_change_during_a_cut_is_notified_afterwards(acme: Acme) -> None:
    """Ours: a replica that may have missed something asks at once (CAP-2, SRV-4)."""
    b = acme.replicas.b
    async with (
        acme.replicas.client(acme.slug, acme.key, to=b) as client,
        client.listen(tools_list_changed=True) as stream,
    ):
        b.pause()
        b.drop_subscription()
        await _change(acme)
        b.resume()
        await _listens(stream)


async def test_a_change_without_an_event_is_notified_after_a_check(acme: Acme) -> None:
    """Ours: a stream never lags behind what its replica lists (CAP-2, SRV-4)."""
    async with (
        acme.replicas.client(acme.slug, acme.key, to=acme.replicas.b) as client,
        client.listen(tools_list_changed=True) as stream,
        anyio.create_task_group() as group,
    ):

        async def ask_on() -> None:
            while True:
                await client.call_tool("get_pet", {"id": 7})
                await anyio.sleep(0.1)

        group.start_soon(ask_on)
        with acme.replicas.a.muted():
            await _change(acme)
        with acme.replicas.b.hurrying():
            await _listens(stream)
        group.cancel_scope.cancel()


async def test_a_stream_of_a_deleted_tenant_ends(acme: Acme) -> None:
    """Ours: a deleted tenant is gone for listeners, too, on every replica (TEN-1)."""
    async with (
        acme.replicas.client(acme.slug, acme.key, to=acme.replicas.b) as client,
        client.listen(tools_list_changed=True) as stream,
    ):
        (await acme.replicas.a.gateway.admin.delete(f"/tenants/{acme.slug}")).raise_for_status()
        with anyio.fail_after(PATIENCE_S):
            async for event in stream:
                assert event


async def test_streams_of_ended_keys_end_without_an_event(acme: Acme) -> None:
    """Ours: the events about the key and the catalog are lost, and the streams end all the same (TEN-2, RES-6)."""
    gateway, listening = acme.replicas.a.gateway, anyio.Event()
    names = ("revoke", "rotate", "delete")
    keys = {name: await gateway.create_key(acme.slug) for name in names}
    open_count = 0

    async def listen(key: str) -> None:
        nonlocal open_count
        async with (
            acme.replicas.client(acme.slug, key, to=acme.replicas.b) as client,
            client.listen(tools_list_changed=True) as stream,
        ):
            open_count += 1
            if open_count == len(keys):
                listening.set()
            async for event in stream:
                assert event

    async with (
        acme.replicas.client(acme.slug, acme.key, to=acme.replicas.b) as other,
        other.listen(tools_list_changed=True) as stays,
    ):
        with anyio.fail_after(PATIENCE_S * 2):
            async with AsyncExitStack() as stack, anyio.create_task_group() as group:
                for key in keys.values():
                    group.start_soon(listen, key)
                await listening.wait()
                with acme.replicas.a.muted():
                    for name in names:
                        path = f"/tenants/{acme.slug}/keys/key_{keys[name].split('_')[2]}"
                        ended = gateway.admin.delete(path) if name == "delete" else gateway.admin.post(f"{path}/{name}")
                        (await ended).raise_for_status()
                stack.enter_context(acme.replicas.b.hurrying())
        await _change(acme)
        await _listens(stays)


async def test_a_listener_of_a_lost_replica_listens_at_the_other(acme: Acme) -> None:
    """Ours: a killed replica costs a stream, not the hearing (CAP-2, SRV-1)."""
    async with acme.replicas.client(acme.slug, acme.key) as client:
        acme.replicas.turns.clear()
        with pytest.raises(SubscriptionLost), anyio.fail_after(PATIENCE_S):
            async with client.listen(tools_list_changed=True) as stream:
                name, _ = acme.replicas.turns[-1]
                next(replica for replica in acme.replicas.all if replica.name == name).kill()
                await _listens(stream)
        left = next(replica for replica in acme.replicas.all if replica.is_up)
        async with client.listen(tools_list_changed=True) as stream:
            await left.gateway.import_document(acme.slug, many(acme.upstream.url, 1), name="more")
            await _listens(stream)
