"""Attacks by a writer of Redis: every kind of name the gateway keeps, what seals it, and what an edit of it achieves.

`KINDS` lists every name and channel. Kinds that are believed are sealed: what is forged, moved from another place or of
another purpose is refused. Plain kinds are counters, places, leases and hints: an edit costs the edited tenant, only.
"""

import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

import msgspec
import pytest
import redis.asyncio

from gateway.domain.events import CatalogMoved
from gateway.domain.fairness.task_supervisor import TaskSupervisor
from gateway.domain.http.requests import AccessToken
from gateway.domain.identifiers import KeyId, TenantId
from gateway.domain.sessions import SessionRecord
from gateway.domain.tenancy.policy import Limits
from gateway.errors import RedisUnavailable
from gateway.redis.audit_heads import RedisHeadStore
from gateway.redis.audit_spool import AuditSpool
from gateway.redis.caches.oauth_tokens import SharedTokens
from gateway.redis.caches.result_overflow import ResultOverflow
from gateway.redis.envelopes import Envelope, MessageRefused
from gateway.redis.event_bus import EventBus
from gateway.redis.heartbeat import ReplicaHeartbeat
from gateway.redis.limits.call_limiter import CallLimiter
from gateway.redis.sessions.keys import STANDALONE, SessionKeys
from gateway.redis.sessions.records import Sessions, new_session_id
from gateway.redis.sessions.stores import SessionStores, session_stores
from gateway.redis.sessions.stream_log import START
from gateway.store.audit.anchors import TrailHead
from gateway.store.audit.outside_heads import open_head, seal_head
from tests.support.streams import open_stream

ACME, GLOBEX = TenantId("ten_acme"), TenantId("ten_globex")
SECRET, STATE_SECRET = b"the secret of all replicas", b"s" * 32
_KEY = KeyId("key_1")
_TOKEN = AccessToken(value="tok", expires_at=time.time() + 80_000, life_s=80_000)


@dataclass(frozen=True, slots=True)
class Kind:
    """Names of one kind: `sealed` under a MAC or AEAD bound to the name, or `plain`."""

    name: str
    pattern: str
    rule: Literal["sealed", "plain"]


_T = r"gw:t:ten_\w+"
_S = rf"{_T}:s:[A-Za-z0-9_-]{{43}}"
KINDS = (
    Kind("event channels", rf"{_T}:events", "sealed"),
    Kind("session records", _S, "sealed"),
    Kind("messages of streams", rf"{_S}:log:\S+", "sealed"),
    Kind("answers to questions, in the state of a session", rf"{_S}:state", "sealed"),
    Kind("kept results", rf"{_T}:leftover:\w+:\S+", "sealed"),
    Kind("access tokens", rf"{_T}:token:\w+", "sealed"),
    Kind("waiting audit entries", r"gw:audit(:\w+)?", "sealed"),
    Kind("audit heads", rf"{_T}:audit-head", "sealed"),
    Kind("the turn to take out audit entries", r"gw:audit:\w+:turn", "plain"),
    Kind("names of streams", rf"{_S}:logs", "plain"),
    Kind("wake channels", rf"{_S}:wake", "plain"),
    Kind("subscriptions and their URIs", rf"{_S}:(subscriptions|uris)", "plain"),
    Kind("subscribers", rf"{_T}:subscribers:\w+", "plain"),
    Kind("lists of sessions", rf"{_T}:sessions(:\w+)?", "plain"),
    Kind("sizes of kept results", rf"{_T}:leftovers:(ends|sizes)", "plain"),
    Kind("locks of tokens", rf"{_T}:token-lock:\w+", "plain"),
    Kind("used nonces", rf"{_T}:nonce:\S+", "plain"),
    Kind("rates", rf"{_T}:rate(:\w+)?", "plain"),
    Kind("slots of calls", rf"{_T}:slots", "plain"),
    Kind("places of streams", rf"{_T}:streams(:\w+)?", "plain"),
    Kind("lives of replicas", r"gw:replica:\w+(:alive)?", "plain"),
)


@dataclass(frozen=True, slots=True)
class Stored:
    """One of everything for each of two tenants, and an intruder with a connection of its own."""

    bus: EventBus
    stores: SessionStores
    intruder: Any
    mine: SessionKeys
    colleague: SessionKeys
    stranger: SessionKeys
    records: dict[str, SessionRecord]
    uris: dict[TenantId, str]

    async def find(self, keys: SessionKeys) -> SessionRecord | None:
        """A session as a replica without a lease finds it."""
        return await Sessions(self.bus, spawn=self.stores.spawn).find(keys.tenant, keys.session)

    @property
    def results(self) -> ResultOverflow:
        """The kept results."""
        return ResultOverflow(self.bus)

    @property
    def tokens(self) -> SharedTokens:
        """The shared tokens."""
        return SharedTokens(self.bus, secret=STATE_SECRET)

    def overflow(self, installation: str = "one") -> AuditSpool:
        """The waiting entries of an installation."""
        made = AuditSpool(self.bus, secret=STATE_SECRET)
        made.belong_to(installation)
        return made

    async def named(self, pattern: str) -> bytes:
        """The one key of this pattern."""
        [found] = [key async for key in self.intruder.scan_iter(match=pattern)]
        return cast(bytes, found)


@pytest.fixture
async def stored(redis_url: str) -> AsyncGenerator[Stored]:
    """Everything that a gateway keeps in Redis."""
    intruder: Any = cast(Any, redis.asyncio.Redis).from_url(redis_url, protocol=2)
    async with EventBus(redis_url, secret=SECRET) as bus, ReplicaHeartbeat(bus), TaskSupervisor() as tasks:
        stores = session_stores(bus, spawn=tasks.spawn, idle_s=60)
        keys, records, uris = list[SessionKeys](), dict[str, SessionRecord](), dict[TenantId, str]()
        for tenant in (ACME, ACME, GLOBEX):
            record = _record(tenant)
            await stores.sessions.create(record, cap=10)
            keys.append(stores.sessions.keys(tenant, record.id))
            records[record.id] = record
        mine, colleague, stranger = keys
        made = Stored(bus, stores, intruder, mine, colleague, stranger, records, uris)
        for each in keys:
            await _use_session(made, each)
        for tenant in (ACME, GLOBEX):
            uri = await made.results.keep(tenant, "subject", "text/plain", f"of {tenant}".encode())
            assert uri is not None
            uris[tenant] = uri
            await made.tokens.put(tenant, "place", _TOKEN)
            await RedisHeadStore(bus).put({tenant: seal_head(STATE_SECRET, tenant, TrailHead(1, b"h"), at_us=1)})
        await made.overflow().keep([b"an entry"])
        yield made
    await intruder.aclose()


def _record(tenant: TenantId) -> SessionRecord:
    return SessionRecord(
        id=new_session_id(), tenant=tenant, subject="subject", profile=None, protocol_version="2025-11-25", client={}
    )


async def _use_session(stored: Stored, keys: SessionKeys) -> None:
    await stored.stores.subscriptions.subscribe(keys, "note://1")
    await stored.stores.logs.append(keys, STANDALONE, b"a message", request_id="question")
    assert await stored.stores.pending_requests.accept(keys, "question", f"of {keys.session}".encode())


async def test_every_name_in_redis_is_of_a_listed_kind(stored: Stored) -> None:
    """Ours: the table has everything that the gateway stores, so a new kind is decided on before it is stored
    (TEN-5).
    """
    bus, stores = stored.bus, stored.stores
    async with (
        CallLimiter(bus, spawn=stores.spawn).admit(ACME, _KEY, Limits()),
        open_stream(stores.stream_limiter, ACME, _KEY, 5),
    ):
        await stores.nonces.use(ACME, "hook:1:2", for_s=60)
        async with stored.tokens.lock(ACME, "place"):
            await stored.overflow().peek(1)
            found = {key.decode() async for key in stored.intruder.scan_iter()}

    unlisted = {name for name in found if not any(re.fullmatch(kind.pattern, name) for kind in KINDS)}
    unseen = {kind.name for kind in KINDS if not any(re.fullmatch(kind.pattern, name) for name in found)}

    assert unlisted == set()
    assert unseen == {"event channels", "wake channels"}


Attack = Callable[[Stored], Awaitable[None]]
"""Edits Redis and asserts that nothing was believed."""


async def _forge_event(stored: Stored) -> None:
    envelope = Envelope(namespace="gw", secret=SECRET)
    channel, message = envelope.seal(CatalogMoved(tenant=GLOBEX, revision=9))
    for place, reported in (
        (f"gw:t:{ACME}:events", message),
        (channel, b"\0" * 16 + message[16:]),
        (channel, Envelope(namespace="gw", secret=b"another").seal(CatalogMoved(tenant=GLOBEX, revision=9))[1]),
    ):
        with pytest.raises(MessageRefused):
            envelope.open(place.encode(), reported)


async def _forge_record(stored: Stored) -> None:
    mine, raw = stored.mine, await stored.intruder.get(stored.mine.record)
    record = stored.records[mine.session]
    for planted in (
        msgspec.json.encode(record),
        msgspec.json.encode(replace(record, subject="another")),
        raw.replace(b'"subject":"subject"', b'"subject":"another"'),
        await stored.intruder.get(stored.stranger.record),
        await stored.intruder.get(stored.colleague.record),
        re.sub(rb'"seal":"\w+"', b'"seal":"' + b"0" * 32 + b'"', raw),
        b"\xff",
    ):
        await stored.intruder.set(mine.record, planted)
        assert await stored.find(mine) is None, planted
    await stored.intruder.set(mine.record, raw)
    assert await stored.find(mine) == record


async def _move_record(stored: Stored) -> None:
    raw = await stored.intruder.get(stored.stranger.record)
    for keys in (SessionKeys("gw", ACME, stored.stranger.session), SessionKeys("gw", ACME, new_session_id())):
        await stored.intruder.set(keys.record, raw)
        assert await stored.find(keys) is None


async def _forge_message(stored: Stored) -> None:
    mine, name = stored.mine, stored.mine.log(STANDALONE)
    [(_, fields)] = await stored.intruder.xrange(stored.stranger.log(STANDALONE))
    for planted in (fields, {b"d": b"forged"}, {b"f": b"forged", b"m": fields[b"m"]}):
        await stored.intruder.xadd(name, planted)
    found = await stored.stores.logs.read(mine, STANDALONE, START)
    assert [message.text for message in found.messages if message.text] == [b"a message"]
    assert not found.messages[-1].is_final


async def _forge_answer(stored: Stored) -> None:
    pending, mine = stored.stores.pending_requests, stored.mine
    real = await pending.get_response(mine, "question")
    assert real == f"of {mine.session}".encode()
    await stored.stores.logs.append(mine, STANDALONE, b"asked", request_id="another")
    mac = await stored.intruder.hget(mine.state, "a:question")
    of_colleague, of_stranger = [
        (await stored.intruder.hget(keys.state, "q:question"), await stored.intruder.hget(keys.state, "a:question"))
        for keys in (stored.colleague, stored.stranger)
    ]
    for answer, planted in (
        (b'{"action":"accept"}', None),
        (b'{"action":"accept"}', mac),
        (real, mac),
        of_colleague,
        of_stranger,
        (b"x", b""),
    ):
        await stored.intruder.hdel(mine.state, "a:another")
        await stored.intruder.hset(mine.state, "q:another", answer)
        if planted is not None:
            await stored.intruder.hset(mine.state, "a:another", planted)
        assert await pending.get_response(mine, "another") is None, answer


async def _forge_result(stored: Stored) -> None:
    key = await stored.named(f"gw:t:{ACME}:leftover:*")
    real = await stored.intruder.hgetall(key)
    foreign = await stored.intruder.hgetall(await stored.named(f"gw:t:{GLOBEX}:leftover:*"))
    forged = {**real, b"body": b"of the intruder"}
    for planted in (foreign, forged, {b"type": b"text/html", b"body": b"x"}, {**real, b"type": b"text/html"}):
        await stored.intruder.delete(key)
        await stored.intruder.hset(key, mapping=planted)
        assert await stored.results.read(ACME, "subject", stored.uris[ACME]) is None, planted
    await stored.intruder.hset(key, mapping=real)
    kept = await stored.results.read(ACME, "subject", stored.uris[ACME])
    assert kept is not None
    assert kept.body == f"of {ACME}".encode()


async def _forge_token(stored: Stored) -> None:
    key = await stored.named(f"gw:t:{ACME}:token:*")
    foreign = await stored.intruder.get(await stored.named(f"gw:t:{GLOBEX}:token:*"))
    for planted in (foreign, msgspec.json.encode(_TOKEN), b"", b"\0" * 40):
        await stored.intruder.set(key, planted)
        assert await stored.tokens.get(ACME, "place") is None, planted


async def _forge_waiting_entry(stored: Stored) -> None:
    [(_, fields)] = await stored.intruder.xrange("gw:audit:one")
    for planted in (b"", b"\0" * 16 + b"forged", fields[b"e"][:16] + b"forged"):
        await stored.intruder.xadd("gw:audit:one", {"e": planted})
    await stored.intruder.xadd("gw:audit:two", fields)
    assert [entry for _, entry in await stored.overflow().peek(10)] == [b"an entry"]
    assert await stored.overflow("two").peek(10) == []


async def _forge_head(stored: Stored) -> None:
    [real], [foreign] = [await RedisHeadStore(stored.bus).get(tenant) for tenant in (ACME, GLOBEX)]
    for planted in (foreign, real.replace(b'"number":1', b'"number":2'), b"{}", b"\xff"):
        await stored.intruder.set(f"gw:t:{ACME}:audit-head", planted)
        [kept] = await RedisHeadStore(stored.bus).get(ACME)
        assert open_head([STATE_SECRET], ACME, kept) is None
    assert open_head([STATE_SECRET], ACME, real) == TrailHead(1, b"h")


SEALED: dict[str, tuple[Attack, ...]] = {
    "event channels": (_forge_event,),
    "session records": (_forge_record, _move_record),
    "messages of streams": (_forge_message,),
    "answers to questions, in the state of a session": (_forge_answer,),
    "kept results": (_forge_result,),
    "access tokens": (_forge_token,),
    "waiting audit entries": (_forge_waiting_entry,),
    "audit heads": (_forge_head,),
}


@pytest.mark.parametrize(
    "attack", [attack for attacks in SEALED.values() for attack in attacks], ids=lambda attack: attack.__name__
)
async def test_nothing_sealed_is_believed_from_another_hand_or_place(stored: Stored, attack: Attack) -> None:
    """Ours: forged, changed, and of another tenant, session, question or installation: refused (TEN-5, SAF-4)."""
    await attack(stored)


def test_every_sealed_kind_has_an_attack() -> None:
    """Ours: the table and its attacks agree (TEN-5)."""
    assert set(SEALED) == {kind.name for kind in KINDS if kind.rule == "sealed"}


async def test_state_of_the_release_before_is_believed_for_a_while_only(stored: Stored) -> None:
    """Ours: while an upgrade may be under way, state without a MAC counts; a wrong MAC never does (SRV-6, TEN-5)."""
    mine, record = stored.mine, stored.records[stored.mine.session]
    await stored.intruder.set(mine.record, msgspec.json.encode(record))
    refused = await stored.find(mine)
    stored.bus.accept_unsealed(time.time() + 60)
    accepted = await stored.find(mine)
    await stored.intruder.set(mine.record, msgspec.json.encode(record)[:-1] + b',"seal":"' + b"0" * 32 + b'"}')
    wrong = await stored.find(mine)

    assert (refused, accepted, wrong) == (None, record, None)


_NONSENSE: tuple[bytes, ...] = (b"moon", b"-1", b"", b"\xff\xfe")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.rule == "plain"], ids=lambda kind: kind.name)
async def test_an_edit_of_plain_state_costs_its_own_tenant_only(stored: Stored, kind: Kind) -> None:
    """Ours: nonsense under every plain name of one tenant breaks nothing of another, and grants nothing (TEN-5)."""
    bus, stores, intruder = stored.bus, stored.stores, stored.intruder
    async with (
        CallLimiter(bus, spawn=stores.spawn).admit(ACME, _KEY, Limits()),
        open_stream(stores.stream_limiter, ACME, _KEY, 5),
    ):
        await stores.nonces.use(ACME, "hook:1:2", for_s=60)
        async with stored.tokens.lock(ACME, "place"):
            names = [key async for key in intruder.scan_iter() if re.fullmatch(kind.pattern, key.decode())]
            for name in names:
                if b"globex" not in name:
                    await _spoil(intruder, name)

    await _works_for(stored, GLOBEX, stored.stranger)


async def _spoil(intruder: Any, name: bytes) -> None:
    """Other values of the same type, and then another type."""
    kept: bytes = await intruder.type(name)
    for value in _NONSENSE:
        if kept == b"hash":
            for member in await intruder.hkeys(name):
                await intruder.hset(name, member, value)
            await intruder.hset(name, value, value)
        elif kept == b"set":
            await intruder.sadd(name, value)
        elif kept == b"zset":
            await intruder.zadd(name, {value: 9e15})
        else:
            await intruder.set(name, value)


async def _works_for(stored: Stored, tenant: TenantId, keys: SessionKeys) -> None:
    """Everything of an untouched tenant."""
    bus, stores = stored.bus, stored.stores
    assert await stored.find(keys) is not None
    async with (
        CallLimiter(bus, spawn=stores.spawn).admit(tenant, _KEY, Limits()),
        open_stream(stores.stream_limiter, tenant, _KEY, 5),
    ):
        pass
    assert await stores.nonces.use(tenant, "hook:1:2", for_s=60)
    assert await stores.subscriptions.publish(tenant, "note://1") == 1
    assert await stored.results.keep(tenant, "subject", "text/plain", b"more") is not None
    async with stored.tokens.lock(tenant, "place"):
        assert await stored.tokens.get(tenant, "place") == _TOKEN
    assert await stores.pending_requests.get_response(keys, "question") == f"of {keys.session}".encode()


async def test_planted_subscribers_reach_no_other_place(stored: Stored) -> None:
    """Ours: an update is sealed for sessions of its own tenant only, whatever the set of subscribers contains
    (TEN-5).
    """
    subscribers = await stored.named(f"gw:t:{ACME}:subscribers:*")
    outside = f"../{GLOBEX}:s:{stored.stranger.session}"
    planted = (stored.stranger.session, outside, f"{stored.mine.session}:state", "x:log:g", "")
    await stored.intruder.sadd(subscribers, *planted)
    before = await stored.intruder.xlen(stored.stranger.log(STANDALONE))

    notified = await stored.stores.subscriptions.publish(ACME, "note://1")

    assert notified == 2
    assert await stored.intruder.xlen(stored.stranger.log(STANDALONE)) == before


async def test_a_deleted_nonce_is_the_residue(stored: Stored) -> None:
    """Ours: a deletion is no forgery and cannot be sealed against; it opens what its own tenant had used (TEN-5)."""
    nonces = stored.stores.nonces
    assert await nonces.use(ACME, "hook:1:2", for_s=60)
    assert not await nonces.use(ACME, "hook:1:2", for_s=60)
    await stored.intruder.delete(f"gw:t:{ACME}:nonce:hook:1:2")
    await stored.intruder.set(f"gw:t:{GLOBEX}:nonce:hook:1:2", b"moved")

    assert await nonces.use(ACME, "hook:1:2", for_s=60)
    assert not await nonces.use(GLOBEX, "hook:1:2", for_s=60)


async def test_a_list_of_sessions_of_another_type_is_redis_failing(stored: Stored) -> None:
    """Ours: an edit that no script expects is an unavailable Redis for that tenant, not a fault of the gateway."""
    await stored.intruder.delete(f"gw:t:{ACME}:sessions")
    await stored.intruder.set(f"gw:t:{ACME}:sessions", b"no list")

    with pytest.raises(RedisUnavailable):
        await stored.stores.sessions.create(_record(ACME), cap=10)
    await stored.stores.sessions.create(_record(GLOBEX), cap=10)
