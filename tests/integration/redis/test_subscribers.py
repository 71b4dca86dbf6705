"""Stored subscribers of a resource, and their time limit."""

from typing import Any

from gateway.redis.sessions.limits import MAX_PARAMS_BYTES
from gateway.redis.sessions.records import Sessions
from tests.integration.redis.conftest import ACME, GLOBEX, Two, make_record

_ENDED = 30
_MANY = 100


async def test_expired_subscribers_are_removed(two: Two, raw: Any) -> None:
    """Ours: of a resource that never changes the ended sessions are forgotten as others subscribe (RES-6)."""
    subscriptions, sessions = two.here.subscriptions, two.here.sessions
    await subscriptions.subscribe(two.keys, "note://1")
    for _ in range(_ENDED):
        record = make_record()
        await sessions.create(record, cap=1000)
        keys = sessions.keys(ACME, record.id)
        await subscriptions.subscribe(keys, "note://1")
        await raw.delete(keys.record)  # as when it expires
    for _ in range(_ENDED):  # each new one checks some of the others
        await subscriptions.subscribe(two.keys, "note://1")

    [subscribers] = [key async for key in raw.scan_iter("*subscribers*")]
    assert await raw.scard(subscribers) < _ENDED // 3
    assert await raw.sismember(subscribers, two.record.id)


async def test_a_session_with_many_subscriptions_costs_as_little_as_one_with_none(two: Two, raw: Any) -> None:
    """Ours: a session in use is looked for every second, and its subscriptions are left alone meanwhile (RES-6)."""
    sessions, subscriptions = two.here.sessions, two.here.subscriptions
    for number in range(_MANY):
        await subscriptions.subscribe(two.keys, f"note://{number}")
    before = await _renewals(raw)
    for _ in range(10):
        await Sessions(two.there.bus, spawn=two.there.spawn, idle_s=60).find(
            ACME, two.record.id
        )  # one that holds no lease
    assert await _renewals(raw) - before < _MANY

    await raw.pexpire(two.keys.subscriptions, sessions.idle_ms - 1)
    before = await _renewals(raw)
    await Sessions(two.there.bus, spawn=two.there.spawn, idle_s=60).find(ACME, two.record.id)
    assert await _renewals(raw) - before >= _MANY


async def test_nothing_of_a_session_in_use_expires_before_it(two: Two, raw: Any) -> None:
    """Ours: a subscription outlives the stream, whatever its age (RES-4, RES-6)."""
    subscriptions = two.here.subscriptions
    for round_ in range(4):
        await subscriptions.subscribe(two.keys, f"note://{round_}")
        await subscriptions.subscribe(two.keys, "note://0")
        for key in await _kept(raw):  # as after so much time in which it was used
            await raw.pexpire(key, await raw.pttl(key) - 5_000)
        await Sessions(two.there.bus, spawn=two.there.spawn, idle_s=60).find(ACME, two.record.id)
        left = await raw.pttl(two.keys.record)
        assert min([await raw.pttl(key) for key in await _kept(raw)]) >= left - 100

    assert await subscriptions.publish(ACME, "note://0") == 1


async def test_uris_are_kept_with_the_session_unless_they_are_long(two: Two, raw: Any) -> None:
    """Ours: changes of a template reach them; they end with the session (RES-5, RES-6)."""
    subscriptions = two.here.subscriptions
    for uri in ("note://1", "note://ключ", "note://1", "note://gone", "long://" + "x" * MAX_PARAMS_BYTES):
        await subscriptions.subscribe(two.keys, uri)
    await subscriptions.unsubscribe(two.keys, "note://gone")
    followed = [uri async for some in two.there.subscriptions.followed(ACME) for uri in some]
    elsewhere = [uri async for some in two.there.subscriptions.followed(GLOBEX) for uri in some]
    await two.here.sessions.remove(ACME, two.record.id)

    assert sorted(followed) == ["note://1", "note://ключ"]
    assert elsewhere == []
    assert [key async for key in raw.scan_iter(f"*{two.record.id}*")] == []


async def _renewals(raw: Any) -> int:
    return int((await raw.info("commandstats")).get("cmdstat_pexpire", {"calls": 0})["calls"])


async def _kept(raw: Any) -> list[bytes]:
    return [key async for key in raw.scan_iter("*") if b"subscri" in key or b":uris" in key]
