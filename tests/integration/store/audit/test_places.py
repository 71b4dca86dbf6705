"""Places in an audit trail: entries that a reader gets when they are committed out of order."""

from collections.abc import AsyncGenerator

import pytest

from gateway.domain.audit import AuditKind, CallRecord
from gateway.domain.identifiers import TenantId
from gateway.store.audit import places
from gateway.store.audit.chain_writer import APPEND, ChainWriter
from gateway.store.database.connection import connect_app
from tests.support.servers import TestDatabase
from tests.support.trails import TrailWorld, trail_world


@pytest.fixture
async def world(database: TestDatabase, redis_url: str) -> AsyncGenerator[TrailWorld]:
    """A tenant whose trail has nothing but its creation."""
    async with trail_world(database, redis_url) as made:
        yield made


async def _read(world: TrailWorld, place: dict[str, int], *, limit: int = 500) -> list[str]:
    """The targets of the entries behind the place, which moves behind them."""
    async with world.store.transaction(world.tenant) as db:
        links = await places.behind(world.tenant, db, place, limit=limit)
    place |= places.after(place, links)
    return [one.row.target for one in links]


def _record(tenant: TenantId, tool: str) -> CallRecord:
    return CallRecord(
        tenant=tenant, kind=AuditKind.CALL, principal="p", subject="s", tool=tool, outcome="ok", correlation_id="c"
    )


async def test_an_entry_that_commits_late_is_read(world: TrailWorld) -> None:
    """Ours: a transaction stays open while later ones commit and are read; its entry, older by id, follows (SAF-8)."""
    place: dict[str, int] = {}
    assert len(await _read(world, place)) == 1
    late, early = ChainWriter(b"key"), ChainWriter(b"key")
    slow, quick = await connect_app(world.database.app_url), await connect_app(world.database.app_url)
    try:
        await slow.execute("begin")
        await slow.fetchval(APPEND, late.rows([_record(world.tenant, "late")]))
        await quick.fetchval(APPEND, early.rows([_record(world.tenant, "early")]))

        first = await _read(world, place)
        again = await _read(world, place)
        await slow.execute("commit")
        await quick.fetchval(APPEND, early.rows([_record(world.tenant, "last")]))
        second = await _read(world, place)
    finally:
        await slow.close()
        await quick.close()

    assert (first, again) == (["early"], [])
    assert sorted(second) == ["last", "late"]
    assert await _read(world, place) == []


async def test_an_entry_with_an_old_id_is_read(world: TrailWorld) -> None:
    """Ours: an outcome that waited in Redis keeps its old id, and is read when it is stored (SAF-8)."""
    place: dict[str, int] = {}
    await _read(world, place)
    chains = ChainWriter(b"key")
    connection = await connect_app(world.database.app_url)
    try:
        await connection.fetchval(APPEND, chains.rows([_record(world.tenant, "new")]))
        await _read(world, place)
        old = ChainWriter(b"key")
        rows = old.rows_of([(_record(world.tenant, "old"), "aud_00000000001x", 1)])
        await connection.fetchval(APPEND, rows)
    finally:
        await connection.close()

    assert await _read(world, place) == ["old"]


async def test_a_busy_chain_does_not_delay_another(world: TrailWorld) -> None:
    """Ours: each chain is read in its order, and all chains in turns (SAF-8)."""
    place: dict[str, int] = {}
    await _read(world, place)
    connection = await connect_app(world.database.app_url)
    try:
        for name in ("a", "b"):
            records = [_record(world.tenant, f"{name}{number}") for number in range(6)]
            await connection.fetchval(APPEND, ChainWriter(b"key").rows(records))
    finally:
        await connection.close()

    parts = [await _read(world, place, limit=5) for _ in range(4)]

    every = [target for part in parts for target in part]
    assert [target for target in every if target[0] == "a"] == [f"a{number}" for number in range(6)]
    assert [target for target in every if target[0] == "b"] == [f"b{number}" for number in range(6)]
    assert {target[0] for target in parts[0]} == {"a", "b"}


async def test_the_oldest_entry_behind_a_place_is_known(world: TrailWorld) -> None:
    """Ours: the lag of a sink is the age of what waits for it (SAF-8)."""
    async with world.store.transaction(world.tenant) as db:
        waiting = await places.oldest_behind(world.tenant, db, {})
        nothing = await places.oldest_behind(world.tenant, db, await places.ends(world.tenant, db))

    assert waiting is not None
    assert nothing is None
