"""Followers of a catalog over a real database: notified at once, late, once, and never of another catalog."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import anyio
import anyio.lowlevel
import pytest
from structlog.testing import capture_logs

from gateway.catalog.snapshots.credential_cache import CredentialCache
from gateway.catalog.snapshots.python_primitives import PythonPrimitive, PythonPrimitives
from gateway.catalog.snapshots.snapshots import Snapshots
from gateway.definitions.json_schema.validator_cache import Validators
from gateway.domain.identifiers import KeyId, TenantId, new_issuer_id
from gateway.domain.tenancy.keys import Scope
from gateway.domain.tenancy.principals import InboundToken, Principal
from gateway.domain.tenancy.tenants import Tenant
from gateway.errors import DatabaseUnavailable, NotFound
from gateway.handlers.binding import Binder
from gateway.registry.connections.connections import Connections, StillValid
from gateway.registry.cursors import Cursors
from gateway.registry.registry import Registry
from gateway.registry.views import ViewCache
from gateway.store import tenants
from gateway.store.encryption import EnvelopeCipher
from gateway.store.engine import Store
from gateway.store.kinds.tenants import TENANTS
from gateway.upstream.client import UpstreamClient
from tests.support.ids import new_tenant_id

NEVER = 1e6


@dataclass(slots=True)
class Received:
    """A listener that can be waited for: the revisions before and after, and whether the tenant was lost."""

    revisions: list[tuple[int, int | None]] = field(default_factory=list[tuple[int, int | None]])
    _changed: anyio.Event = field(default_factory=anyio.Event)

    def __call__(self, old: Registry, new: Registry | None) -> None:
        self.revisions.append((old.revision, None if new is None else new.revision))
        self._changed.set()
        self._changed = anyio.Event()

    async def until(self, revision: int | None) -> None:
        with anyio.fail_after(10):
            while not self.revisions or self.revisions[-1][1] != revision:
                await self._changed.wait()


@dataclass(slots=True)
class Replica:
    """The parts of a replica between the store and a face."""

    store: Store
    snapshots: Snapshots
    connections: Connections

    async def show(self, tenant: TenantId, key: str = "key_1") -> Registry:
        """Primitives that a request of the tenant with this key sees."""
        async with self.connections.open(_principal(tenant, key)) as registry:
            return registry

    async def advance(self, tenant: TenantId) -> int:
        """A change of the catalog without an event."""
        async with self.store.transaction(tenant) as db:
            return await tenants.advance(tenant, db)

    async def create(self, slug: str) -> TenantId:
        """A tenant with nothing in it."""
        tenant = Tenant(id=new_tenant_id(), slug=slug, name=slug, version=1, created_at=datetime.now(UTC))
        async with self.store.transaction(tenant.id) as db:
            await TENANTS.insert(tenant.id, db, tenant)
        return tenant.id

    async def remove(self, tenant: TenantId) -> None:
        """A removal of the tenant without an event."""
        async with self.store.transaction(tenant) as db:
            await TENANTS.remove(tenant, db, tenant)


def _principal(tenant: TenantId, key: str = "key_1") -> Principal:
    return Principal(
        tenant=tenant, slug="acme", key=KeyId(key), subject="s", scopes=frozenset({Scope.MCP}), profile=None
    )


@pytest.fixture
async def store(database_url: str) -> AsyncGenerator[Store]:
    async with Store(database_url) as opened:
        yield opened


@dataclass(slots=True)
class FollowerAccess:
    """Permitted followers; during an outage it is unknown."""

    ended: set[str] = field(default_factory=set[str])
    is_away: bool = False
    asked: int = 0

    async def __call__(self, principal: Principal) -> bool:
        self.asked += 1
        if self.is_away:
            raise DatabaseUnavailable("away")
        return principal.key not in self.ended


@dataclass(slots=True)
class Code:
    """Code without primitives whose generation can change."""

    generation: int = 0

    def primitives(self) -> Sequence[PythonPrimitive]:
        return ()


def _parts(
    store: Store, recheck_s: float, still_valid: StillValid | None = None, code: PythonPrimitives | None = None
) -> Replica:
    sealer = EnvelopeCipher(("secret-key-of-the-tests-0123456789abc",))
    snapshots = Snapshots(store, code=code)
    views = ViewCache(Binder(UpstreamClient(), CredentialCache(store, sealer), Validators()))
    connections = Connections(
        snapshots,
        views,
        Cursors(sealer.derive("cursors")),
        recheck_s=recheck_s,
        still_valid=still_valid or FollowerAccess(),
    )
    return Replica(store, snapshots, connections)


@pytest.fixture
async def replica(store: Store) -> AsyncGenerator[Replica]:
    """A replica that never asks by itself."""
    made = _parts(store, NEVER)
    async with made.connections:
        yield made


@pytest.fixture
async def asking(store: Store) -> AsyncGenerator[Replica]:
    """A replica that asks all the time."""
    made = _parts(store, 0.02)
    async with made.connections:
        yield made


def _notify(replica: Replica, tenant: TenantId, revision: int) -> None:
    """Effect of an event in the application."""
    replica.snapshots.note(tenant, revision)
    replica.connections.refresh(tenant, revision)


async def test_a_follower_adopts_the_revision_of_an_event(replica: Replica) -> None:
    """Ours: an event brings every follower of the tenant to the new revision, and no other tenant's (CON-2)."""
    acme, globex = await replica.create("acme"), await replica.create("globex")
    first, second, other = Received(), Received(), Received()
    for tenant, arrived in ((acme, first), (acme, second), (globex, other)):
        replica.connections.subscribe(await replica.show(tenant), arrived)
    _notify(replica, acme, await replica.advance(acme))
    await first.until(2)
    await second.until(2)

    assert first.revisions == second.revisions == [(1, 2)]
    assert other.revisions == []


async def test_code_that_was_registered_before_a_follower_joined_is_adopted(store: Store) -> None:
    """Ours: code that is registered between the reading of a registry and its subscription is not missed (PRG-1,
    CON-2).
    """
    code = Code()
    made = _parts(store, NEVER, code=code)
    async with made.connections:
        acme = await made.create("acme")
        shown, arrived = await made.show(acme), Received()
        code.generation += 1
        made.connections.renew(code.generation)  # no follower yet
        assert not made.connections.is_current(shown)
        assert made.connections.has_new_code

        made.connections.subscribe(shown, arrived)
        await arrived.until(1)

    assert arrived.revisions == [(1, 1)]


async def test_a_burst_of_events_is_loaded_once_or_twice(replica: Replica) -> None:
    """Ours: many changes in a moment cost few loads, and the last one is shown (CON-2)."""
    acme = await replica.create("acme")
    followers = [Received() for _ in range(50)]
    shown = await replica.show(acme)
    for arrived in followers:
        replica.connections.subscribe(shown, arrived)
    revisions = [await replica.advance(acme) for _ in range(20)]
    with capture_logs() as lines:
        for revision in revisions:
            _notify(replica, acme, revision)
        for arrived in followers:
            await arrived.until(revisions[-1])

    assert [line["event"] for line in lines].count("snapshot_loaded") == 1
    assert all(arrived.revisions == [(1, 21)] for arrived in followers)


async def test_an_old_event_notifies_no_follower(replica: Replica) -> None:
    """Ours: events are hints; only a newer revision is adopted (CON-2)."""
    acme = await replica.create("acme")
    await replica.advance(acme)
    arrived = Received()
    replica.connections.subscribe(await replica.show(acme), arrived)
    for revision in (0, 1, 2, 2):
        _notify(replica, acme, revision)
    _notify(replica, acme, await replica.advance(acme))
    await arrived.until(3)

    assert arrived.revisions == [(2, 3)]


async def test_changes_between_opening_and_following_are_not_missed(replica: Replica) -> None:
    """Ours: a late follower is notified of earlier changes (CON-1)."""
    acme = await replica.create("acme")
    shown = await replica.show(acme)
    _notify(replica, acme, await replica.advance(acme))
    arrived = Received()
    replica.connections.subscribe(shown, arrived)
    await arrived.until(2)


async def test_a_revision_found_by_a_request_reaches_the_followers(replica: Replica) -> None:
    """Ours: followers never lag behind what the same replica already shows others (CON-2)."""
    acme = await replica.create("acme")
    arrived = Received()
    replica.connections.subscribe(await replica.show(acme), arrived)
    await replica.advance(acme)
    replica.snapshots.invalidate_all()
    await replica.show(acme)
    await arrived.until(2)


async def test_a_lost_event_is_repaired_by_the_timer(asking: Replica) -> None:
    """Ours: without any event the database is asked, and only the newest is shown (SRV-4, CON-2)."""
    acme = await asking.create("acme")
    arrived = Received()
    asking.connections.subscribe(await asking.show(acme), arrived)
    await asking.advance(acme)
    await arrived.until(2)
    await asking.advance(acme)
    await arrived.until(3)


async def test_a_gap_is_repaired_at_once(replica: Replica) -> None:
    """Ours: after a possible loss of events, no follower waits for the timer (SRV-4)."""
    acme = await replica.create("acme")
    arrived = Received()
    replica.connections.subscribe(await replica.show(acme), arrived)
    await replica.advance(acme)
    replica.connections.recheck_all()
    await arrived.until(2)


async def test_followers_of_a_lost_tenant_are_notified_once(asking: Replica) -> None:
    """Ours: a tenant that is gone has no followers, event or not (TEN-1)."""
    acme, globex = await asking.create("acme"), await asking.create("globex")
    notified, found = Received(), Received()
    leave = asking.connections.subscribe(await asking.show(acme), notified)
    asking.connections.subscribe(await asking.show(globex), found)
    asking.connections.forget(acme)
    await asking.remove(globex)
    await found.until(None)
    asking.connections.forget(acme)
    leave()

    assert notified.revisions == found.revisions == [(1, None)]
    assert asking.connections.subscriber_count == 0
    with pytest.raises(NotFound):
        await asking.show(globex)


async def test_a_former_follower_gets_nothing_and_a_broken_one_stops_no_other(replica: Replica) -> None:
    """Ours: one follower cannot keep the others from what is new (CON-2)."""
    acme = await replica.create("acme")
    shown = await replica.show(acme)
    gone, arrived = Received(), Received()

    def broken(_: Registry, __: Registry | None) -> None:
        raise ValueError("a bug")

    leave = replica.connections.subscribe(shown, gone)
    replica.connections.subscribe(shown, broken)
    replica.connections.subscribe(shown, arrived)
    leave()
    leave()
    with capture_logs() as lines:
        _notify(replica, acme, await replica.advance(acme))
        await arrived.until(2)

    assert gone.revisions == []
    assert "follower_failed" in [line["event"] for line in lines]


async def test_a_request_keeps_the_registry_it_has_taken(replica: Replica) -> None:
    """Ours: a swap breaks no request that is under way (CON-1)."""
    acme = await replica.create("acme")
    arrived = Received()
    async with replica.connections.open(_principal(acme)) as registry:
        replica.connections.subscribe(registry, arrived)
        _notify(replica, acme, await replica.advance(acme))
        await arrived.until(2)
        assert registry.revision == 1
        assert replica.connections.open_count == 1

    assert replica.connections.open_count == 0


async def test_following_ends_with_the_connections(store: Store) -> None:
    """Ours: nothing of a closed part runs on."""
    made = _parts(store, 0.01)
    acme = await made.create("acme")
    arrived = Received()
    async with made.connections:
        made.connections.subscribe(await made.show(acme), arrived)
    await made.advance(acme)
    made.connections.refresh(acme, 2)
    made.connections.recheck_all()
    await anyio.wait_all_tasks_blocked()

    assert arrived.revisions == []


async def test_each_revision_releases_followers_without_permission(store: Store) -> None:
    """Ours: a key's end moves the catalog, so its followers end also without an event about the key (TEN-2)."""
    infrastructure = FollowerAccess()
    made = _parts(store, NEVER, infrastructure)
    async with made.connections:
        acme = await made.create("acme")
        first, second, other = Received(), Received(), Received()
        for arrived, key in ((first, "key_1"), (second, "key_1"), (other, "key_2")):
            made.connections.subscribe(await made.show(acme, key), arrived)
        infrastructure.ended.add("key_1")
        _notify(made, acme, await made.advance(acme))
        for arrived in (first, second):
            await arrived.until(None)
        _notify(made, acme, await made.advance(acme))
        await other.until(3)

        assert made.connections.subscriber_count == 1
        assert first.revisions == second.revisions == [(1, 2), (2, None)]
        assert other.revisions == [(1, 2), (2, 3)]


async def test_a_key_that_ends_without_a_change_is_found_by_the_timer(store: Store) -> None:
    """Ours: expiry moves no catalog; the timer checks, and again during an outage (TEN-2, SRV-4)."""
    infrastructure = FollowerAccess(is_away=True)
    made = _parts(store, 0.02, infrastructure)
    async with made.connections:
        acme, globex = await made.create("acme"), await made.create("globex")
        ended, stays = Received(), Received()
        made.connections.subscribe(await made.show(acme), ended)
        made.connections.subscribe(await made.show(globex, "key_2"), stays)
        infrastructure.ended.add("key_1")
        with anyio.fail_after(10):
            while infrastructure.asked < 3:
                await anyio.lowlevel.checkpoint()
        assert ended.revisions == []
        infrastructure.is_away = False
        await ended.until(None)

        assert made.connections.subscriber_count == 1
        assert stays.revisions == []


async def test_revisions_during_a_key_check_are_not_missed(store: Store) -> None:
    """Ours: a slow answer about a key delays no one's news until the timer (CON-2)."""
    asked, go_on = anyio.Event(), anyio.Event()

    async def slow(_: Principal) -> bool:
        asked.set()
        await go_on.wait()
        return True

    made = _parts(store, NEVER, slow)
    async with made.connections:
        acme, arrived = await made.create("acme"), Received()
        made.connections.subscribe(await made.show(acme), arrived)
        _notify(made, acme, await made.advance(acme))
        with anyio.fail_after(10):
            await asked.wait()
        _notify(made, acme, await made.advance(acme))
        go_on.set()
        await arrived.until(3)


@pytest.mark.parametrize("tokens", [("active", "revoked"), ("revoked", "active")])
async def test_a_revoked_token_ends_its_own_streams_only(store: Store, tokens: tuple[str, str]) -> None:
    """Ours: a person's tokens are valid each for itself, in whatever order their streams began (TEN-2)."""

    async def is_active(principal: Principal) -> bool:
        return principal.token is not None and principal.token.value == "active"

    made = _parts(store, NEVER, is_active)
    async with made.connections:
        acme = await made.create("acme")
        received = {token: Received() for token in tokens}
        for token in tokens:
            person = replace(_principal(acme), is_person=True, token=InboundToken(new_issuer_id(), token))
            async with made.connections.open(person) as shown:
                made.connections.subscribe(shown, received[token])
        made.connections.recheck_all()
        await received["revoked"].until(None)
        _notify(made, acme, await made.advance(acme))
        await received["active"].until(2)

        assert made.connections.subscriber_count == 1
