"""Every change of a catalog: one revision, one audit entry, one event, or nothing at all."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from gateway.catalog import audit, tenants
from gateway.catalog.kinds.keys import KEYS
from gateway.catalog.kinds.singletons import EGRESS, POLICY
from gateway.catalog.kinds.tenants import TENANTS
from gateway.catalog.sources import imports, sources
from gateway.catalog.sources.drafts import SourceDraft
from gateway.catalog.transaction import Author, CatalogContext
from gateway.domain.audit import AuditEntry, AuditFilter
from gateway.domain.events import CatalogMoved, Event, KeyChanged, TenantRemoved
from gateway.domain.identifiers import INSTALLATION
from gateway.domain.tenancy.egress import Egress
from gateway.domain.tenancy.keys import PEPPER_PURPOSE, Scope, digest_key
from gateway.domain.tenancy.policy import ArgumentCondition, ConditionOperator, Decision, Policy, PolicyRule
from gateway.domain.tenancy.principals import Operator
from gateway.domain.tenancy.tenants import Tenant
from gateway.errors import (
    Conflict,
    InvalidBody,
    NotFound,
    PreconditionFailed,
    RedisUnavailable,
    ReferenceMissing,
)
from tests.integration.catalog.conftest import Changes
from tests.support.documents import pets
from tests.support.keys import new_key

BY = Author(caller=Operator(), correlation_id="test")
PETS = SourceDraft(name="pets", document=pets("https://pets.example"))


async def _state(changes: Changes) -> tuple[int, list[str]]:
    """The revision, and the actions of the trail from the newest."""
    tenant = await tenants.get_tenant(changes.tenant.id, changes.catalog)
    return tenant.revision, [entry.action for entry in await _trail(changes)]


async def _trail(changes: Changes) -> list[AuditEntry]:
    found = await audit.page_entries(changes.tenant.id, changes.catalog, AuditFilter(), after=None, limit=100)
    return list(found)


async def test_each_change_is_one_revision_one_entry_and_one_event(changes: Changes) -> None:
    """Ours: revision and audit entry rise with the change, and the event names the revision (SAF-4)."""
    tenant, catalog = changes.tenant.id, changes.catalog
    key, _ = await KEYS.create_with_secret(tenant, catalog, new_key(), by=BY)
    steps: list[tuple[str, Callable[[], Awaitable[object]]]] = [
        ("key.update", lambda: KEYS.change(tenant, catalog, key.id, lambda old: replace(old, name="n"), by=BY)),
        ("key.rotate", lambda: KEYS.rotate(tenant, catalog, key.id, by=BY)),
        ("key.revoke", lambda: KEYS.revoke(tenant, catalog, key.id, by=BY)),
        ("key.delete", lambda: KEYS.remove(tenant, catalog, key.id, by=BY)),
        ("source.create", lambda: imports.import_source(tenant, catalog, PETS, by=BY)),
        ("source.update", lambda: imports.update_source(tenant, catalog, "pets", lambda old: old, by=BY)),
        ("source.delete", lambda: sources.remove_source(tenant, catalog, "pets", by=BY)),
        ("policy.update", lambda: POLICY.change(tenant, catalog, _deny, by=BY)),
        ("egress.update", lambda: EGRESS.set(tenant, catalog, _permit("a.internal:1"), by=BY)),
        ("tenant.rename", lambda: TENANTS.change(tenant, catalog, tenant, _rename, by=BY)),
    ]
    expected = ["key.create", "tenant.create"]
    for action, step in steps:
        changes.events.clear()
        before, _ = await _state(changes)
        await step()
        expected.insert(0, action)
        assert await _state(changes) == (before + 1, expected)
        moved = [one for one in changes.events if isinstance(one, CatalogMoved) and one.tenant != INSTALLATION]
        assert moved == [CatalogMoved(tenant=tenant, revision=before + 1)]
        notified = [event for event in changes.events if isinstance(event, KeyChanged)]
        assert [event.key for event in notified] == [key.id] * action.startswith("key.")


def _permit(entry: str) -> Callable[[Egress], Egress]:
    return lambda current: replace(current, allow=(entry,))


def _rename(tenant: Tenant) -> Tenant:
    return replace(tenant, name="New")


def _deny(policy: Policy) -> Policy:
    return replace(policy, moderate=Decision.DENY)


async def test_a_change_that_fails_leaves_nothing(changes: Changes) -> None:
    """Ours: a refusal inside a change takes back revision and audit entry, and publishes nothing."""
    tenant, catalog = changes.tenant.id, changes.catalog
    key, _ = await KEYS.create_with_secret(tenant, catalog, new_key(), by=BY)
    await imports.import_source(tenant, catalog, PETS, by=BY)
    before = await _state(changes)
    changes.events.clear()
    stale = frozenset({"key_0.1"})
    past = datetime.now(UTC) - timedelta(days=1)
    failing: list[tuple[type[Exception], Callable[[], Awaitable[object]]]] = [
        (PreconditionFailed, lambda: KEYS.revoke(tenant, catalog, key.id, by=BY, expected=stale)),
        (PreconditionFailed, lambda: KEYS.remove(tenant, catalog, key.id, by=BY, expected=stale)),
        (PreconditionFailed, lambda: sources.remove_source(tenant, catalog, "pets", by=BY, expected=stale)),
        (
            PreconditionFailed,
            lambda: TENANTS.change(tenant, catalog, tenant, _rename, by=BY, expected=stale),
        ),
        (PreconditionFailed, lambda: TENANTS.remove(tenant, catalog, tenant, by=BY, expected=stale)),
        (PreconditionFailed, lambda: POLICY.change(tenant, catalog, _deny, by=BY, expected=stale)),
        (PreconditionFailed, lambda: EGRESS.set(tenant, catalog, _permit("b.internal:1"), by=BY, expected=stale)),
        (InvalidBody, lambda: EGRESS.set(tenant, catalog, _permit("10.0.0.0/8:80"), by=BY)),
        (InvalidBody, lambda: POLICY.change(tenant, catalog, _compare_with_text, by=BY)),
        (NotFound, lambda: sources.remove_source(tenant, catalog, "none", by=BY)),
        (ReferenceMissing, lambda: KEYS.create_with_secret(tenant, catalog, new_key(profile="small"), by=BY)),
        (InvalidBody, lambda: KEYS.create_with_secret(tenant, catalog, new_key(expires_at=past), by=BY)),
        (InvalidBody, lambda: KEYS.create_with_secret(tenant, catalog, new_key(*Scope), by=BY)),
    ]
    for kind, attempt in failing:
        with pytest.raises(kind):
            await attempt()
        assert await _state(changes) == before
    assert changes.events == []


def _compare_with_text(policy: Policy) -> Policy:
    condition = ArgumentCondition(pointer="/a", operator=ConditionOperator.GREATER, value="1")
    return replace(policy, rules=(PolicyRule(when=(condition,), decision=Decision.DENY),))


async def test_a_bus_that_is_away_fails_no_change(changes: Changes) -> None:
    """Ours: events are hints; the change is stored without them."""

    async def lose(_: Event) -> None:
        raise RedisUnavailable("away")

    deaf: CatalogContext = replace(changes.catalog, publish=lose)
    key, _ = await KEYS.create_with_secret(changes.tenant.id, deaf, new_key(), by=BY)
    assert await KEYS.get(changes.tenant.id, deaf, key.id) == key


async def test_a_rotated_key_keeps_id_and_subject_and_has_another_digest(changes: Changes) -> None:
    """Ours: a subject survives rotation, the old text does not (TEN-2)."""
    tenant, catalog = changes.tenant.id, changes.catalog
    key, first = await KEYS.create_with_secret(tenant, catalog, new_key(subject="agent"), by=BY)
    assert first is not None
    rotated, second = await KEYS.rotate(tenant, catalog, key.id, by=BY)
    assert (rotated.id, rotated.subject) == (key.id, "agent")
    assert first != second
    pepper = catalog.sealer.derive(PEPPER_PURPOSE)
    digests = (digest_key(first, pepper), digest_key(second, pepper))
    assert (key.secret.digest, rotated.secret.digest) == digests
    assert {key.secret.pepper, rotated.secret.pepper} == {catalog.sealer.names[0]}
    assert (rotated.secret.number, rotated.secrets) == (2, (rotated.secret,))


async def test_a_revoked_key_stays_revoked(changes: Changes) -> None:
    """Ours: no rotation brings an ended key back, and ending it twice changes nothing."""
    tenant, catalog = changes.tenant.id, changes.catalog
    key, _ = await KEYS.create_with_secret(tenant, catalog, new_key(), by=BY)
    first = await KEYS.revoke(tenant, catalog, key.id, by=BY)
    again = await KEYS.revoke(tenant, catalog, key.id, by=BY)
    assert first.revoked_at == again.revoked_at is not None
    with pytest.raises(Conflict):
        await KEYS.rotate(tenant, catalog, key.id, by=BY)


async def test_a_removed_tenant_is_gone_with_everything(changes: Changes) -> None:
    """Ours: the removal of a tenant ends its keys and sources, and all replicas are notified."""
    tenant, catalog = changes.tenant.id, changes.catalog
    key, _ = await KEYS.create_with_secret(tenant, catalog, new_key(), by=BY)
    await imports.import_source(tenant, catalog, PETS, by=BY)
    await TENANTS.remove(tenant, catalog, tenant, by=BY)
    *_, removed, moved = changes.events
    assert removed == TenantRemoved(tenant=tenant)
    assert isinstance(moved, CatalogMoved)
    assert moved.tenant == INSTALLATION
    for attempt in (
        tenants.get_tenant(tenant, catalog),
        tenants.find_tenant(catalog, "acme"),
        KEYS.get(tenant, catalog, key.id),
        sources.get_source(tenant, catalog, "pets"),
        KEYS.create_with_secret(tenant, catalog, new_key(), by=BY),
    ):
        with pytest.raises(NotFound):
            await attempt
    assert (await tenants.create_tenant(catalog, "acme", "Acme", by=BY)).id != tenant


async def test_audit_filters_narrow_each_other(changes: Changes) -> None:
    """Ours: the trail is read by kind, principal and time (SAF-4)."""
    tenant, catalog = changes.tenant.id, changes.catalog
    await KEYS.create_with_secret(tenant, catalog, new_key(), by=BY)
    newest, oldest = await _trail(changes)

    async def count(wanted: AuditFilter) -> int:
        return len(await audit.page_entries(tenant, catalog, wanted, after=None, limit=10))

    assert await count(AuditFilter(principal="operator")) == 2
    assert await count(AuditFilter(principal="key:x")) == 0
    assert await count(AuditFilter(tool="list_pets")) == 0
    assert await count(AuditFilter(since=newest.at)) == 1
    assert await count(AuditFilter(until=newest.at)) == 1
    assert await count(AuditFilter(since=oldest.at, until=oldest.at)) == 0
