"""Sessions of callers at live sources in a real Redis: encrypted, of one owner, bounded, ended once."""

import secrets
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any

import anyio
import pytest

from gateway.domain.identifiers import LiveSourceId, TenantId
from gateway.domain.sessions import SessionOwner, UpstreamSession, UpstreamSessionKey
from gateway.redis.event_bus import EventBus
from gateway.redis.live import upstream_sessions
from gateway.redis.live.upstream_sessions import UpstreamSessions

ACME, GLOBEX = TenantId("ten_acme"), TenantId("ten_globex")
SOURCE = LiveSourceId("liv_one")
SECRET = b"0123456789abcdef0123456789abcdef"
PLACE = ACME, SOURCE, 1


def _key(subject: str = "ann", session: str = "s", *, tenant: TenantId = ACME, version: int = 1) -> UpstreamSessionKey:
    return UpstreamSessionKey(tenant, SOURCE, version, SessionOwner(subject, session), b"v")


def _session(number: int = 1) -> UpstreamSession:
    return UpstreamSession(id=f"very-secret-{number}", revision="2025-11-25")


@dataclass
class Both:
    """The records as two replicas see them."""

    here: UpstreamSessions
    there: UpstreamSessions
    buses: tuple[EventBus, EventBus]


@pytest.fixture
async def both(redis_url: str) -> AsyncGenerator[Both]:
    """Two replicas with one secret, and sessions that end at once when they are not used."""
    space = secrets.token_hex(4)
    async with (
        EventBus(redis_url, secret=SECRET, namespace=space) as here,
        EventBus(redis_url, secret=SECRET, namespace=space) as there,
    ):
        first, second = (UpstreamSessions(bus, secret=SECRET, idle_s=60) for bus in (here, there))
        yield Both(first, second, (here, there))


async def test_a_session_is_found_at_every_replica_by_its_owner_only(both: Both) -> None:
    """DYN-5: tenant, subject, client's session and the source's version are part of the place (TEN-1)."""
    await both.here.store(_key(), _session())
    assert await both.there.touch(_key()) == _session()
    others = (_key("bob"), _key(session="t"), _key(session=""), _key(tenant=GLOBEX), _key(version=2))
    assert [await both.there.touch(other) for other in others] == [None] * 5


async def test_redis_learns_no_session_and_moves_none(both: Both, raw: Any) -> None:
    """Attack: an id is as good as a credential; a record that was copied to another owner is none (TEN-4)."""
    await both.here.store(_key(), _session())
    await both.here.store(_key("mallory"), _session(2))
    space = both.buses[0].namespace
    names = [name async for name in raw.scan_iter(match=f"{space}:*") if await raw.type(name) == b"string"]
    assert len(names) == 2
    for name in names:
        assert b"secret" not in await raw.get(name)
        assert b"mallory" not in name
        assert 0 < await raw.pttl(name) <= 180_000
    stolen, own = [await raw.get(name) for name in names]
    await raw.mset({names[0]: own, names[1]: stolen})
    assert [await both.here.touch(key) for key in (_key(), _key("mallory"))] == [None, None]


async def test_a_session_is_forgotten_unless_it_was_replaced(both: Both) -> None:
    """Ours: of two replicas that find a session ended, the second does not drop the first one's new session."""
    await both.here.store(_key(), _session())
    await both.here.drop(_key(), _session())
    await both.here.store(_key(), _session(2))
    await both.there.drop(_key(), _session())
    assert await both.there.touch(_key()) == _session(2)


async def test_idle_sessions_are_taken_once(redis_url: str) -> None:
    """DYN-5: one replica ends an idle session at the source, and another source's stays."""
    async with EventBus(redis_url, secret=SECRET, namespace=secrets.token_hex(4)) as bus:
        records = UpstreamSessions(bus, secret=SECRET, idle_s=0)
        await records.store(_key(), _session())
        await records.store(_key(version=2), _session(2))
        await anyio.sleep(0.002)  # the time of Redis has milliseconds
        assert await records.take_ended(*PLACE) == [_session()]
        assert await records.take_ended(*PLACE) == []
        assert await records.touch(_key()) is None
        assert await records.take_all(ACME, SOURCE, 2) == [_session(2)]


async def test_sessions_in_use_end_with_their_source_only(both: Both) -> None:
    """Ours: a session in use is not idle; a changed source ends all sessions of its version (DYN-5)."""
    for number, subject in enumerate(("ann", "bob")):
        await both.here.store(_key(subject), _session(number))
    assert await both.there.take_ended(*PLACE) == []
    assert {one.id for one in await both.there.take_all(*PLACE)} == {"very-secret-0", "very-secret-1"}
    assert await both.here.touch(_key("ann")) is None


async def test_the_sessions_of_a_client_end_with_its_own(both: Both) -> None:
    """DYN-5: the end of an MCP session ends what the client had at live sources, and nothing else."""
    for number, key in enumerate((_key(), _key(session="t"), _key("bob", "u"))):
        await both.here.store(key, _session(number))
    await both.there.end_of_client(GLOBEX, "s")
    assert await both.here.take_ended(*PLACE) == []
    await both.there.end_of_client(ACME, "s")
    assert await both.here.take_ended(*PLACE) == [_session(0)]
    assert await both.here.touch(_key()) is None
    assert await both.here.touch(_key(session="t")) == _session(1)


@pytest.mark.parametrize("limit", ["MAX_OF_CALLER", "MAX_OF_TENANT"])
async def test_the_idlest_session_above_a_limit_ends(both: Both, limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Attack: neither a caller nor a tenant leaves sessions without end at live sources (ISO-3)."""
    monkeypatch.setattr(upstream_sessions, limit, 2)
    is_caller = limit == "MAX_OF_CALLER"
    keys = [_key("ann" if is_caller else f"ann{n}", f"s{n}") for n in range(3)]
    other = _key("bob", tenant=ACME if is_caller else GLOBEX)
    await both.here.store(other, _session(9))
    for number, key in enumerate(keys[:2]):
        await both.here.store(key, _session(number))
        await anyio.sleep(0.002)  # the time of Redis has milliseconds
    await both.here.touch(keys[0])
    await both.here.store(keys[2], _session(2))
    assert await both.there.take_ended(*PLACE) == [_session(1)]
    assert [await both.there.touch(key) for key in (*keys, other)] == [_session(0), None, _session(2), _session(9)]


async def test_running_requests_are_marked_for_other_replicas(both: Both) -> None:
    """Ours: a question that reaches one replica finds the one that runs the request (DYN-5)."""
    here, there = both.buses
    await both.here.mark(_key(), "1")
    await both.there.mark(_key(), "2")
    assert await both.here.runners(_key()) == [there.replica]
    assert await both.there.runners(_key()) == [here.replica]
    assert await both.there.runners(_key("bob")) == []
    await both.here.unmark(_key(), "1")
    assert await both.there.runners(_key()) == []


async def test_one_replica_opens_at_a_time(both: Both) -> None:
    """Ours: two calls of a new caller at two replicas open one session (DYN-5)."""
    opened: list[str] = []

    async def open_one(records: UpstreamSessions) -> None:
        async with records.opening(_key()):
            if await records.touch(_key()) is None:
                opened.append("opened")
                await anyio.sleep(0.05)  # as the handshake with a server takes
                await records.store(_key(), _session())

    async with anyio.create_task_group() as group:
        group.start_soon(open_one, both.here)
        group.start_soon(open_one, both.there)
    assert opened == ["opened"]
