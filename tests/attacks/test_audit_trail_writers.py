"""Attacks on the audit trail by a writer of the database: what `audit verify` finds in each state.

The history is of three replicas, each gone when the next one starts. The attacker owns the schema and has copies of
older rows, but no secret key. Afterwards a new replica goes on: it does nothing, makes a change, records a call, or
both, and signs. `inside` is true if the database alone shows the attack; heads outside show the others.
"""

from collections.abc import AsyncGenerator
from dataclasses import dataclass

import pytest

from gateway.domain.audit import AuditTrail
from gateway.domain.identifiers import TenantId
from tests.support.servers import TestDatabase, TestServers
from tests.support.trails import History, TrailWorld, shared_history, trail_world

_CALLS = "writer <> 'catalog'"
_FIRST_CALLS = f"(select writer from audit_entries where {{t}} and {_CALLS} order by at limit 1)"
_LAST_CALLS = f"(select writer from audit_entries where {{t}} and {_CALLS} order by at desc limit 1)"
_RESTORE = (
    "update tenants t set revision = (select revision from saved.tenants s where s.id = t.id)",
    "truncate audit_entries, audit_heads, audit_anchors",
    "insert into audit_entries select * from saved.audit_entries",
    "insert into audit_heads select * from saved.audit_heads",
    "insert into audit_anchors select * from saved.audit_anchors",
)
_OLD_ANCHOR = (
    "update audit_anchors a set number = s.number, head = s.head, mac = s.mac from saved.audit_anchors s "
    "where s.tenant_id = a.tenant_id"
)
_NEWER_HEADS = "delete from audit_heads where number > (select max(number) from saved.audit_heads)"


@dataclass(frozen=True, slots=True)
class Attack:
    """An attack on the tables, and the faults that verification finds at once, without heads outside."""

    name: str
    statements: tuple[str, ...]
    found: frozenset[str]

    @property
    def inside(self) -> bool:
        """True if the database alone shows it."""
        return bool(self.found)


def _attack(name: str, *statements: str, found: str = "") -> Attack:
    return Attack(name, statements, frozenset(found.split()))


ATTACKS = (
    _attack(
        "entries and signatures deleted",
        "delete from audit_entries where {t}",
        "delete from audit_heads where {t}",
        found="catalog:shortened heads:shortened",
    ),
    _attack(
        "entries, signatures and anchor deleted",
        "delete from audit_entries where {t}",
        "delete from audit_heads where {t}",
        "delete from audit_anchors where {t}",
        found="catalog:shortened",
    ),
    _attack("only the entries truncated", "truncate audit_entries", found="catalog:shortened calls:shortened"),
    _attack(
        "one chain deleted with all its signatures",
        f"delete from audit_heads where {{t}} and writer = {_FIRST_CALLS}",
        f"delete from audit_entries where {{t}} and writer = {_FIRST_CALLS}",
        found="heads:missing",
    ),
    _attack(
        "the last chain deleted with all its signatures",
        f"delete from audit_heads where {{t}} and writer = {_LAST_CALLS}",
        f"delete from audit_entries where {{t}} and writer = {_LAST_CALLS}",
        found="heads:shortened",
    ),
    _attack(
        "all chains of calls deleted with all signatures",
        f"delete from audit_entries where {{t}} and {_CALLS}",
        "delete from audit_heads where {t}",
        found="heads:shortened",
    ),
    _attack(
        "all chains of calls deleted with all signatures and the anchor",
        f"delete from audit_entries where {{t}} and {_CALLS}",
        "delete from audit_heads where {t}",
        "delete from audit_anchors where {t}",
        found="heads:shortened anchor:missing",
    ),
    _attack(
        "everything deleted, revision 0",
        "truncate audit_entries, audit_heads, audit_anchors",
        "update tenants set revision = 0 where slug = 'acme'",
        found="catalog:shortened",
    ),
    _attack(
        "everything deleted, revision 1",
        "truncate audit_entries, audit_heads, audit_anchors",
        "update tenants set revision = 1 where slug = 'acme'",
        found="catalog:shortened",
    ),
    _attack(
        "everything deleted, the tenant put back",
        "create temp table one on commit drop as select * from tenants where slug = 'acme'",
        "delete from tenants where slug = 'acme'",
        "truncate audit_entries, audit_heads, audit_anchors",
        "insert into tenants select id, slug, name, 0, created_at from one",
        found="catalog:shortened",
    ),
    _attack(
        "the first entry deleted",
        "delete from audit_entries where {t} and writer = 'catalog' and seq = 1",
        found="catalog:missing",
    ),
    _attack(
        "the last change deleted, the revision lowered",
        "delete from audit_entries where {t} and writer = 'catalog' and seq = 4",
        "update tenants set revision = 3 where slug = 'acme'",
        found="catalog:shortened",
    ),
    _attack(
        "the last change deleted with the signatures, the revision lowered",
        "delete from audit_entries where {t} and writer = 'catalog' and seq = 4",
        "delete from audit_heads where {t}",
        "update tenants set revision = 3 where slug = 'acme'",
        found="heads:shortened",
    ),
    _attack(
        "the last change deleted with signatures and anchor, the revision lowered",
        "delete from audit_entries where {t} and writer = 'catalog' and seq = 4",
        "delete from audit_heads where {t}",
        "delete from audit_anchors where {t}",
        "update tenants set revision = 3 where slug = 'acme'",
        found="heads:shortened anchor:missing",
    ),
    _attack(
        "the anchor forged",
        "update audit_anchors set number = 0, head = ''",
        found="anchor:changed",
    ),
    _attack(
        "the anchor deleted",
        "delete from audit_anchors where {t}",
        found="anchor:missing",
    ),
    _attack(
        "an anchor adopted from nothing",
        "update audit_anchors set kind = 'adopted'",
        found="anchor:changed",
    ),
    _attack(
        "signatures and the last chain of calls put back to before the last changes",
        f"delete from audit_entries where {{t}} and {_CALLS} and id not in (select id from saved.audit_entries)",
        _NEWER_HEADS,
        _OLD_ANCHOR,
        found="heads:shortened",
    ),
    _attack("an older state put back", *_RESTORE),
)
"""In the order of what the attacker has to know."""

_WAYS = (("nothing outside", "call"), ("nothing outside", "change"), ("redis", "change and call"))
"""Stores of heads outside, and the first activity after the attack."""


@pytest.fixture(scope="module")
async def history(servers: TestServers) -> AsyncGenerator[History]:
    """Four changes and two chains of calls, signed by three replicas; `saved` has the state after the first of them."""
    async with shared_history(servers, _make_history) as history:
        yield history


async def _make_history(database: TestDatabase, redis_url: str) -> TenantId:
    async with trail_world(database, redis_url) as made:
        async with made.replica() as first:
            await first.change()
            await first.call(2)
            await first.sign()
        await made.edit("create schema saved", *(f"create table saved.{name} as table {name}" for name in _SAVED))
        async with made.replica() as second:
            await second.change()
            await second.sign()
        async with made.replica() as third:
            await third.change()
            await third.sign()
            await third.call(2)
            await third.sign()
        return made.tenant


@pytest.fixture
def world(history: History, outside: str) -> TrailWorld:
    """The history as its replicas left it."""
    return history.restored(has_redis=outside == "redis")


_SAVED = ("tenants", "audit_entries", "audit_heads", "audit_anchors")


@pytest.mark.parametrize("outside", ["redis", "nothing outside"])
async def test_an_honest_trail_is_whole(world: TrailWorld) -> None:
    """Ours: replicas that come and go, changes and calls leave a trail without a fault (SAF-4)."""
    for _ in range(2):
        trail = await world.verify()
        assert trail.is_whole, _faults(trail)
        assert [store.state.value for store in trail.stores] == ["matched"] * len(world.outside)
        await _go_on(world, "change and call")


@pytest.mark.parametrize(("outside", "first"), _WAYS)
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name.replace(" ", "-"))
async def test_removed_entries_are_found(world: TrailWorld, attack: Attack, first: str) -> None:
    """Ours: a deletion is found whatever is deleted with it and whatever follows; service goes on (SAF-4, TEN-5)."""
    await world.edit(*attack.statements)
    is_hidden = not world.outside and not attack.inside

    at_once = await world.verify()
    assert at_once.is_whole is is_hidden
    assert {fault for fault in _faults(at_once) if not fault.startswith("redis")} == attack.found
    for then in (first, "change and call"):
        await _go_on(world, then)
        trail = await world.verify()
        assert trail.is_whole is is_hidden, (then, _faults(trail))


@pytest.mark.parametrize("outside", ["nothing outside"])
async def test_a_change_without_a_predecessor_records_a_break(world: TrailWorld) -> None:
    """Ours: the break is an entry of its own kind, in the list too, and the change itself is made (SAF-4)."""
    await world.edit("truncate audit_entries, audit_heads, audit_anchors")
    await _go_on(world, "change")

    trail = await world.verify()

    catalog = next(chain for chain in trail.chains if chain.writer == "catalog")
    assert catalog.fault is not None
    assert (catalog.fault.kind.value, catalog.fault.number, catalog.last) == ("broken", 4, 5)


async def _go_on(world: TrailWorld, what: str) -> None:
    """A new replica that does this, and signs."""
    async with world.replica() as replica:
        if "change" in what:
            await replica.change("Another")
        if "call" in what:
            await replica.call()
        await replica.sign()


def _faults(trail: AuditTrail) -> set[str]:
    """The first fault of each kind of chain, of the anchor and of the stores."""
    kinds = {"catalog": "catalog", "heads:trail": "heads"}
    found = {f"{kinds.get(one.writer, 'calls')}:{one.fault.kind.value}" for one in trail.chains if one.fault}
    if not trail.anchor.is_whole:
        found.add(f"anchor:{trail.anchor.state.value}")
    return found | {f"{store.store}:{store.state.value}" for store in trail.stores if not store.is_consistent}
