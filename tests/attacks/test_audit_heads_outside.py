"""Heads of audit trails outside the database: what each store shows, when it is lost, forged or away."""

import json
import shutil
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from gateway.catalog import tenants
from gateway.catalog.kinds.tenants import TENANTS
from gateway.catalog.transaction import CatalogChange, record
from gateway.domain.audit import AnchorState, AuditTrail, HeadsCompared, HeadsState
from gateway.domain.identifiers import INSTALLATION, TenantId
from gateway.errors import BrokenSetting
from gateway.redis.audit_heads import RedisHeadStore
from gateway.settings import load_settings
from gateway.store.audit.anchors import TrailHead
from gateway.store.audit.head_file import FileHeads
from gateway.store.audit.outside_heads import HEADS_PURPOSE, FoundHeads, HeadStore, compare_heads, open_head, seal_head
from gateway.store.encryption import EnvelopeCipher
from gateway.upstream.audit_heads_endpoint import EndpointHeads
from gateway.upstream.client import UpstreamClient
from tests.support.gateway import running_gateway
from tests.support.replicas import commanding
from tests.support.servers import TestDatabase, TestServers
from tests.support.trails import BY, SECRET, History, TrailWorld, make_catalog, shared_history, trail_world
from tests.support.upstream import RecordingUpstream, Seen, recording_upstream

_SAVED = ("tenants", "audit_entries", "audit_heads", "audit_anchors")
_NO_HEADS = b'{"heads":[]}'
_TENANT, _OTHER = TenantId("ten_a"), TenantId("ten_b")
_ROLLED_BACK = (
    "truncate audit_entries, audit_heads, audit_anchors",
    *(f"insert into {name} select * from saved.{name}" for name in _SAVED[1:]),
    "update tenants t set revision = (select revision from saved.tenants s where s.id = t.id)",
)


@dataclass(frozen=True, slots=True)
class Written:
    """A trail, and what a file and an endpoint were sent of it."""

    history: History
    file: Path
    sent: Sequence[Seen]


@pytest.fixture(scope="module")
async def recorder() -> AsyncGenerator[RecordingUpstream]:
    """The endpoint of all tests."""
    async with recording_upstream() as recorder:
        yield recorder


@pytest.fixture
def endpoint(recorder: RecordingUpstream) -> RecordingUpstream:
    """An endpoint that takes heads, and has none."""
    recorder.reset()
    recorder.body = _NO_HEADS
    return recorder


@pytest.fixture(scope="module")
async def written(
    servers: TestServers, recorder: RecordingUpstream, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[Written]:
    """A trail with heads in Redis, in a file and at an endpoint; `saved` has its state after the first signature."""
    recorder.body = _NO_HEADS
    file = tmp_path_factory.mktemp("heads") / "heads.jsonl"

    async with UpstreamClient(egress_allow=[recorder.authority]) as upstream:
        sent = EndpointHeads(upstream, recorder.url, token="let-me")

        async def make(database: TestDatabase, redis_url: str) -> TenantId:
            async with trail_world(database, redis_url, stores=[FileHeads(file), sent]) as made:
                await _write(made)
                tables = (f"create table saved.{name} as table {name}" for name in _SAVED)
                await made.edit("create schema saved", *tables)
                await _write(made)
                return made.tenant

        async with shared_history(servers, make, stores=[sent]) as history:
            yield Written(history, file, tuple(recorder.seen))


@pytest.fixture
def world(written: Written, endpoint: RecordingUpstream, tmp_path: Path, redis_url: str) -> TrailWorld:
    """The trail as it was written, and what each store has of it."""
    endpoint.seen.extend(written.sent)
    file = FileHeads(Path(shutil.copy(written.file, tmp_path)))
    restored = written.history.restored()
    redis, sent = restored.outside
    return replace(restored, outside=[redis, file, sent])


async def test_every_store_is_compared(world: TrailWorld, endpoint: RecordingUpstream, tmp_path: Path) -> None:
    """Ours: each store has the newest signature, and verify reports each (SAF-4)."""
    endpoint.body = _answered(endpoint)

    compared = (await world.verify()).stores

    assert [(one.store, one.state.value, one.number) for one in compared] == [
        ("redis", "matched", 4),
        (str(tmp_path / "heads.jsonl"), "matched", 4),
        (endpoint.url, "matched", 4),
    ]
    assert {one.header("authorization") for one in endpoint.seen} == {"Bearer let-me"}
    assert endpoint.seen[-1].target == f"/?tenant={world.tenant}"


@pytest.mark.parametrize("kept", ["redis", "file", "endpoint"])
async def test_an_older_state_is_found_by_each_store_alone(
    world: TrailWorld, endpoint: RecordingUpstream, kept: str, redis_url: str
) -> None:
    """Ours: a database that was put back lacks what any one store has, also after new activity (SAF-4)."""
    endpoint.body = _answered(endpoint)
    alone = replace(world, outside=[world.outside[("redis", "file", "endpoint").index(kept)]])
    await world.edit(*_ROLLED_BACK)

    before = await alone.verify()
    for _ in range(3):
        await _write(alone)
    after = await alone.verify()

    assert [one.state for one in before.stores] == [HeadsState.MISSING]
    assert not before.is_whole
    assert not after.is_whole
    if kept == "redis":  # the signer went on from what Redis knew, so the gap is in the database for good
        assert {chain.fault.kind.value for chain in after.chains if chain.fault} == {"missing"}
        with commanding(redis_url) as command:
            command("FLUSHDB")
        assert not (await alone.verify()).is_whole
    else:
        assert [one.state for one in after.stores] == [HeadsState.CHANGED]


async def test_an_emptied_redis_is_no_tampering(world: TrailWorld, redis_url: str) -> None:
    """Ours: nothing to compare is reported as such, and the next signature fills Redis again (SAF-4)."""
    alone = replace(world, outside=world.outside[:1])
    with commanding(redis_url) as command:
        command("FLUSHDB")

    emptied = await alone.verify()
    await _write(alone)
    filled = await alone.verify()

    assert (emptied.is_whole, [one.state for one in emptied.stores]) == (True, [HeadsState.EMPTY])
    assert (filled.is_whole, [one.state for one in filled.stores]) == (True, [HeadsState.MATCHED])


async def test_a_writer_of_redis_forges_no_head(world: TrailWorld, redis_url: str) -> None:
    """Ours: a head that we did not seal for this tenant is refused and reported, and stops no signer (SAF-4, TEN-5)."""
    alone = replace(world, outside=world.outside[:1])
    key = f"gw:t:{world.tenant}:audit-head"
    real = (await RedisHeadStore(world.bus).get(world.tenant))[0]
    other = await tenants.create_tenant(make_catalog(world.store, world.upstream), "other", "Other", by=BY)
    sealing = EnvelopeCipher([SECRET]).derive(HEADS_PURPOSE)
    forgeries = {
        "made up": b'{"tenant":"x","number":1,"head":"","at":"","mac":""}',
        "number raised": real.replace(b'"number":4', b'"number":90'),
        "of another tenant": seal_head(sealing, other.id, TrailHead(90, b"h" * 32), at_us=0),
        "of another key": seal_head(b"k" * 32, world.tenant, TrailHead(90, b"h" * 32), at_us=0),
        "nonsense": b"\xff\x00",
    }
    compared = HeadsCompared(store="redis", state=HeadsState.REFUSED, refused=1)
    for name, forged in forgeries.items():
        with commanding(redis_url) as command:
            command("SET", key, forged)

        forged_trail = await alone.verify()
        await _write(alone)
        after = await alone.verify()

        assert (forged_trail.is_whole, list(forged_trail.stores)) == (True, [compared]), name
        assert (after.is_whole, [one.state for one in after.stores]) == (True, [HeadsState.MATCHED]), name


async def test_an_older_head_put_back_into_redis_is_still_true(world: TrailWorld, redis_url: str) -> None:
    """Ours: verify lists the compared stores by number, so that a missing one shows (SAF-4)."""
    alone = replace(world, outside=world.outside[:1])
    older = (await RedisHeadStore(world.bus).get(world.tenant))[0]
    await _write(alone)
    with commanding(redis_url) as command:
        command("SET", f"gw:t:{world.tenant}:audit-head", older)

    trail = await alone.verify()

    assert (trail.is_whole, trail.stores[0].number, trail.anchor.number) == (True, 4, 6)


async def test_stores_that_are_away_hold_nothing_up(
    database: TestDatabase, redis_url: str, tmp_path: Path, endpoint: RecordingUpstream
) -> None:
    """Ours: signing goes on, failures are counted, and what was not delivered comes later (SAF-4, SRV-4)."""
    folder = tmp_path / "later"
    async with UpstreamClient(egress_allow=[endpoint.authority]) as upstream, trail_world(database, redis_url) as world:
        stores: list[HeadStore] = [FileHeads(folder / "heads.jsonl"), EndpointHeads(upstream, endpoint.url)]
        away = replace(world, outside=stores)
        endpoint.status = 503
        async with away.replica() as replica:
            await replica.call()
            await replica.sign()
            failures = dict(replica.heads.failures)
            unreachable = await away.verify_with(replica.heads)
            folder.mkdir()
            endpoint.status = 200
            await replica.sign()
        endpoint.body = _answered(endpoint)
        delivered = await away.verify()

    assert set(failures.values()) == {1}
    assert [one.state.value for one in unreachable.stores] == ["empty", "unreachable"]
    assert unreachable.is_whole
    assert [one.state.value for one in delivered.stores] == ["matched", "matched"]


async def test_an_endpoint_in_a_private_network_is_dialled_only_where_allowed(
    database: TestDatabase, redis_url: str, endpoint: RecordingUpstream
) -> None:
    """Ours: heads leave by the one door out, which is the guard's (TEN-5)."""
    async with UpstreamClient() as upstream, trail_world(database, redis_url, has_redis=False) as world:
        closed = replace(world, outside=[EndpointHeads(upstream, endpoint.url)])
        await _write(closed)
        trail = await closed.verify()

    assert [one.state for one in trail.stores] == [HeadsState.UNREACHABLE]
    assert endpoint.seen == []


async def test_calls_deleted_before_they_were_signed_are_missed(world: TrailWorld) -> None:
    """Ours: the replica that wrote them signs what it wrote, whatever the table has by then (SAF-4)."""
    async with world.replica() as replica:
        await replica.call()
        await replica.sign()
        await replica.call(3)
        await world.edit("delete from audit_entries where {t} and writer <> 'catalog' and seq > 1")
        await replica.sign()

    assert "shortened" in {chain.fault.kind.value for chain in (await world.verify()).chains if chain.fault}


async def test_a_running_signer_misses_signatures_that_were_put_back(world: TrailWorld) -> None:
    """Ours: with nothing outside, a replica that lives remembers what the database forgot (SAF-4)."""
    alone = replace(world, outside=())
    async with alone.replica() as replica:
        await replica.change()
        await replica.sign()
        await world.edit(*_ROLLED_BACK)
        await replica.change()
        await replica.sign()

    trail = await alone.verify()

    assert next(chain for chain in trail.chains if chain.writer == "heads:trail").fault is not None


async def test_an_older_tenant_is_adopted_and_then_anchored(database: TestDatabase, redis_url: str) -> None:
    """Ours: a tenant from before anchors existed is trusted once, and verify reports it (SAF-4)."""
    async with trail_world(database, redis_url, has_redis=False) as world:
        await _as_of_the_release_before(world)
        pending = await world.verify()
        await _write(world)
        adopted = await world.verify()
        await _write(world)
        await world.edit(
            "delete from audit_heads", "delete from audit_anchors", "delete from audit_entries where seq > 2"
        )
        await _write(world)
        cut = await world.verify()

    assert (pending.is_whole, pending.anchor.state) == (True, AnchorState.PENDING)
    assert (adopted.is_whole, adopted.anchor.state) == (True, AnchorState.ADOPTED)
    assert not cut.is_whole


async def test_a_tenant_created_again_under_a_slug_has_its_own_trail(world: TrailWorld) -> None:
    """Ours: removing a tenant and making another of its name is no tampering (SAF-4)."""
    catalog = make_catalog(world.store, world.upstream)
    await TENANTS.remove(world.tenant, catalog, world.tenant, by=BY)
    again = await tenants.create_tenant(catalog, "acme", "Acme", by=BY)
    recreated = replace(world, tenant=again.id)
    await _write(recreated)

    trail = await recreated.verify()

    assert trail.is_whole
    assert trail.anchor.state is AnchorState.CREATED
    assert next(chain for chain in trail.chains if chain.writer == "catalog").entries == 2


async def test_the_gateway_writes_heads_to_the_configured_places(
    database: TestDatabase, redis_url: str, tmp_path: Path
) -> None:
    """Ours: the file, the answer of verify and the metric, through the whole application (SAF-4, ADM-1)."""
    file = tmp_path / "heads.jsonl"
    shown: dict[str, Any] = {}
    metrics = ""
    for _ in range(2):
        async with running_gateway(database.app_url, redis_url, audit_heads=(str(file),)) as gateway:
            if not file.exists():
                await gateway.create_tenant("acme")
            await gateway.create_key("acme")
            shown = (await gateway.admin.get("/tenants/acme/audit/verify")).json()
            operator = gateway.admin.headers["authorization"]
            metrics = (await gateway.http.get("/metrics", headers={"authorization": operator})).text

    assert [(one["store"], one["state"]) for one in shown["stores"]] == [("redis", "matched"), (str(file), "matched")]
    assert (shown["ok"], shown["anchor"]["state"], shown["anchor"]["ok"]) == (True, "created", True)
    assert file.stat().st_mode & 0o777 == 0o600
    own = [one for one in file.read_text().splitlines() if INSTALLATION not in one]
    assert len(own) == 2
    assert f'gateway_audit_heads_failures_total{{store="{file}"}} 0' in metrics


@pytest.mark.parametrize(
    "place", ["heads.jsonl", "http://heads.example", "https://user:pass@heads.example", "https://"]
)
def test_heads_go_to_absolute_paths_and_https_only(monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    """Ours: a setting that would send heads in the clear, or to no valid place, stops the start (SAF-4)."""
    monkeypatch.setenv("GATEWAY_AUDIT_HEADS", place)

    with pytest.raises(BrokenSetting, match="GATEWAY_AUDIT_HEADS"):
        load_settings()


def test_a_head_opens_for_its_tenant_and_under_any_configured_key_only() -> None:
    """Ours: secret keys can be changed one replica after the other (TEN-5)."""
    trail = TrailHead(7, b"h" * 32)
    old, new = b"o" * 32, b"n" * 32
    sealed = seal_head(old, _TENANT, trail, at_us=1)

    assert open_head([new, old], _TENANT, sealed) == trail
    assert open_head([new], _TENANT, sealed) is None
    assert open_head([old], _OTHER, sealed) is None
    assert open_head([old], _TENANT, sealed.replace(b'"number":7', b'"number":8')) is None
    assert compare_heads(FoundHeads("redis", [trail]), {7: b"h" * 32}, 9).state is HeadsState.MATCHED


def _answered(endpoint: RecordingUpstream) -> bytes:
    """Responses of an endpoint that keeps everything."""
    posted = [json.loads(one.body)["heads"] for one in endpoint.seen if one.method == "POST"]
    return json.dumps({"heads": [head for heads in posted for head in heads]}).encode()


async def _write(world: TrailWorld) -> AuditTrail:
    """A change and a call by a replica that then ends."""
    async with world.replica() as replica:
        await replica.change()
        await replica.call()
        await replica.sign()
    return await world.verify()


async def _as_of_the_release_before(world: TrailWorld) -> None:
    """The tenant as an older gateway made it: no anchor, and a first entry that names none."""
    await world.edit("truncate audit_entries, audit_heads, audit_anchors")
    catalog = make_catalog(world.store, world.upstream)
    async with world.store.transaction(world.tenant) as db:
        await record(
            world.tenant, catalog, CatalogChange(action="tenant.create", target="acme"), db=db, by=BY, revision=1
        )
