"""Commits of one replica that the other shows: by an event, or by a check after a lost event."""

from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, nullcontext
from functools import partial
from typing import Any

import anyio
import pytest
from mcp import Client

from tests.behaviour.replicas.conftest import Acme
from tests.support.documents import many, pets
from tests.support.gateway import ACCEPT
from tests.support.replicas import Mode, Replica, Replicas, tool_names, until
from tests.support.upstream import recording_upstream

PETS = ["create_pet", "delete_pet", "get_pet", "list_pets"]
NOTIFIED_S = 5
"""An event is there within a second; what is waited for here may have a busy machine to wait for too."""
FOUND_OUT_S = 20
"""Whatever a replica keeps is compared with the database after five seconds; the machine may be busy."""


async def _shows(client: Client, names: list[str], *, within: float) -> None:
    """Wait until a client's list is this one."""

    async def is_shown() -> bool:
        return await tool_names(client) == names

    await until(is_shown, seconds=within)


async def _refuses(acme: Acme, key: str, *, within: float, slug: str | None = None) -> None:
    """Wait until the second replica does not know a key any more."""

    async def is_refused() -> bool:
        return await _status(acme.replicas, slug or acme.slug, key) == 401

    await until(is_refused, seconds=within)


async def _status(replicas: Replicas, slug: str, key: str) -> int:
    """Response of the second replica to a request without a session: 400 when the key is good."""
    async with replicas.http(key, to=replicas.b) as http:
        body = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        return (await http.post(f"/t/{slug}/mcp", json=body, headers={"accept": ACCEPT})).status_code


async def _import(acme: Acme, replica: Replica, name: str) -> None:
    document = many(acme.upstream.url, 2)
    await replica.gateway.import_document(acme.slug, document, name=name, prefix=name)


async def _put(acme: Acme, name: str, document: object, **more: str) -> None:
    path = f"/tenants/{acme.slug}/sources/{name}"
    (
        await acme.replicas.a.gateway.admin.put(path, json={"document": document, "allow_removals": True, **more})
    ).raise_for_status()


async def _delete(acme: Acme, path: str = "") -> None:
    (await acme.replicas.a.gateway.admin.delete(f"/tenants/{acme.slug}{path}")).raise_for_status()


async def _revoke(acme: Acme, key: str) -> None:
    path = f"/tenants/{acme.slug}/keys/key_{key.split('_')[2]}/revoke"
    (await acme.replicas.a.gateway.admin.post(path)).raise_for_status()


async def _forbid(acme: Acme) -> None:
    answer = await acme.replicas.a.gateway.admin.patch(f"/tenants/{acme.slug}/policy", json={"safe": "deny"})
    answer.raise_for_status()


async def _denies(client: Client, *, within: float) -> None:
    """Wait until a safe call is denied."""

    async def is_denied() -> bool:
        return bool((await client.call_tool("get_pet", {"id": 7})).is_error)

    await until(is_denied, seconds=within)


@contextmanager
def _cut_off(acme: Acme) -> Generator[None]:
    """While the block runs the second replica is stopped, and its events are lost for good."""
    acme.replicas.b.pause()
    acme.replicas.b.drop_subscription()
    try:
        yield
    finally:
        acme.replicas.b.resume()


@contextmanager
def _lost(acme: Acme) -> Generator[None]:
    """While the block runs, no event of the first replica arrives, and no error shows it."""
    with acme.replicas.a.muted():
        yield


@contextmanager
def _notified(_: Acme) -> Generator[None]:
    """While the block runs, events arrive."""
    yield


ways = pytest.mark.parametrize("way", [_notified, _cut_off])
Way = Callable[[Acme], Any]


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
@ways
async def test_sources_that_come_change_and_go_at_a_are_shown_by_b(acme: Acme, mode: Mode, way: Way) -> None:
    """Ours: a change reaches the lists of every replica, also of one that was cut off (CON-1, CON-2, SRV-4)."""
    async with acme.replicas.client(acme.slug, acme.key, mode, to=acme.replicas.b) as client:
        await _shows(client, PETS, within=NOTIFIED_S)
        with way(acme):
            await acme.replicas.a.gateway.import_document(acme.slug, many(acme.upstream.url, 1), name="more")
        await _shows(client, [*PETS, "op_0000"], within=NOTIFIED_S)
        with way(acme):
            await _put(acme, "more", many(acme.upstream.url, 2))
        await _shows(client, [*PETS, "op_0000", "op_0001"], within=NOTIFIED_S)
        with way(acme):
            await _delete(acme, "/sources/more")
        await _shows(client, PETS, within=NOTIFIED_S)


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
@ways
async def test_a_policy_set_at_a_is_kept_by_b(acme: Acme, mode: Mode, way: Way) -> None:
    """Ours: a prohibition of a tenant holds at every replica (SAF-2, CON-2)."""
    async with acme.replicas.client(acme.slug, acme.key, mode, to=acme.replicas.b) as client:
        assert not (await client.call_tool("get_pet", {"id": 7})).is_error
        with way(acme):
            await _forbid(acme)
        await _denies(client, within=NOTIFIED_S)


@ways
async def test_a_key_revoked_at_a_is_refused_by_b(acme: Acme, way: Way) -> None:
    """Ours: a revoked key ends everywhere (TEN-2)."""
    assert await _status(acme.replicas, acme.slug, acme.key) == 400
    with way(acme):
        await _revoke(acme, acme.key)
    await _refuses(acme, acme.key, within=NOTIFIED_S)


@pytest.mark.parametrize("way", [_notified, _cut_off, _lost])
async def test_the_next_tenant_of_a_slug_starts_empty(acme: Acme, way: Way) -> None:
    """Ours: nothing of a deleted tenant is ever shown to the next of its name, on any replica (TEN-1)."""
    gateway = acme.replicas.a.gateway
    async with acme.replicas.client(acme.slug, acme.key, to=acme.replicas.b) as client:
        assert await tool_names(client) == PETS
    with way(acme):
        await _delete(acme)
        await gateway.create_tenant(acme.slug)
        await gateway.import_document(acme.slug, many(acme.upstream.url, 1))
        new = await gateway.create_key(acme.slug)
    for mode in ("legacy", "2026-07-28"):
        async with acme.replicas.client(acme.slug, new, mode, to=acme.replicas.b) as client:
            assert await tool_names(client) == ["op_0000"]
    with acme.replicas.b.hurrying():
        await _refuses(acme, acme.key, within=FOUND_OUT_S)


@asynccontextmanager
async def _both_eras(acme: Acme, key: str) -> AsyncGenerator[tuple[Client, Client]]:
    b = acme.replicas.b
    async with (
        acme.replicas.client(acme.slug, key, "legacy", to=b) as old,
        acme.replicas.client(acme.slug, key, "2026-07-28", to=b) as new,
    ):
        yield old, new


async def test_b_finds_changes_without_events(acme: Acme, slugs: Iterator[str]) -> None:
    """Ours: when events are lost without a trace, every change is found out within seconds (SRV-4, CON-2, TEN-2)."""
    gateway = acme.replicas.a.gateway
    for name in ("changed", "gone"):
        await gateway.import_document(acme.slug, pets(acme.upstream.url), name=name, prefix=name)
    revoked, other = await gateway.create_key(acme.slug), next(slugs)
    await gateway.create_tenant(other)
    orphan = await gateway.create_key(other)
    wanted = sorted([*PETS, "changed_op_0000", "op_0000"])
    async with (
        _both_eras(acme, acme.key) as clients,
        AsyncExitStack() as stack,
        anyio.create_task_group() as group,
    ):
        for client in clients:
            assert len(await tool_names(client)) == 12
        assert await _status(acme.replicas, acme.slug, revoked) == await _status(acme.replicas, other, orphan) == 400
        with _lost(acme):
            await gateway.import_document(acme.slug, many(acme.upstream.url, 1), name="new")
            await _put(acme, "changed", many(acme.upstream.url, 1), prefix="changed")
            await _delete(acme, "/sources/gone")
            await _forbid(acme)
            await _revoke(acme, revoked)
            (await gateway.admin.delete(f"/tenants/{other}")).raise_for_status()
            stack.enter_context(acme.replicas.b.hurrying())
            for client in clients:
                group.start_soon(partial(_shows, client, wanted, within=FOUND_OUT_S))
                group.start_soon(partial(_denies, client, within=FOUND_OUT_S))
            group.start_soon(partial(_refuses, acme, revoked, within=FOUND_OUT_S))
            group.start_soon(partial(_refuses, acme, orphan, slug=other, within=FOUND_OUT_S))


async def _permit(acme: Acme, *entries: str) -> None:
    answer = await acme.replicas.a.gateway.admin.put(f"/tenants/{acme.slug}/egress", json={"allow": entries})
    answer.raise_for_status()


async def _arrives(acme: Acme, replica: Replica) -> bool:
    """True if a call of the tenant reaches its private upstream through this replica."""
    answer = await replica.gateway.rpc(acme.slug, acme.key, "tools/call", {"name": "op_0000"})
    return "upstream.egress_denied" not in answer.text


@pytest.mark.parametrize(("way", "within"), [(_notified, NOTIFIED_S), (_cut_off, NOTIFIED_S), (_lost, FOUND_OUT_S)])
async def test_a_private_upstream_permitted_and_withdrawn_at_a_is_so_at_b(acme: Acme, way: Way, within: float) -> None:
    """Ours: a permission holds on every replica and ends there, for idle connections too (ISO-5)."""
    a, b = acme.replicas.all

    async def becomes(is_open: bool) -> None:
        async def has_become() -> bool:
            return await _arrives(acme, b) is is_open

        with b.hurrying() if way is _lost else nullcontext():
            await until(has_become, seconds=within)

    async with recording_upstream() as private:
        await a.gateway.import_document(acme.slug, many(private.url, 1), name="private")
        assert not await _arrives(acme, a)
        assert not await _arrives(acme, b)
        with way(acme):
            await _permit(acme, private.authority)
        await becomes(True)
        assert await _arrives(acme, a)
        with way(acme):
            await _permit(acme)
        await becomes(False)
        seen = len(private.seen)
        for replica in acme.replicas.all * 3:
            assert not await _arrives(acme, replica)
        assert len(private.seen) == seen


async def test_changes_at_both_replicas_at_once_end_in_one_list(acme: Acme) -> None:
    """Ours: all replicas show the last change in the end (CON-2)."""
    async with anyio.create_task_group() as group:
        for number, replica in enumerate(acme.replicas.all * 3):
            name = f"s{number}"
            group.start_soon(partial(_import, acme, replica, name))
    wanted = sorted([*PETS, *(f"s{number}_op_000{index}" for number in range(6) for index in range(2))])
    for replica in acme.replicas.all:
        async with acme.replicas.client(acme.slug, acme.key, to=replica) as client:
            await _shows(client, wanted, within=NOTIFIED_S)
