"""Checks before the transaction of an application, which may wait for upstreams."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import anyio
import pytest

from gateway.catalog.kinds.profiles import PROFILES
from gateway.catalog.manifests.apply import apply_manifests
from gateway.catalog.manifests.drafts import Draft, prepare_all, read_drafts
from gateway.catalog.manifests.limits import PREPARED_AT_ONCE
from gateway.catalog.manifests.manifest import ManifestSet, Wanted
from gateway.catalog.manifests.targets import CollectionTarget
from gateway.catalog.transaction import Author, CatalogContext
from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.principals import Operator
from gateway.domain.tenancy.profiles import Profile
from gateway.errors import DatabaseUnavailable, GatewayError, ReferenceMissing
from gateway.kinds.selections import PROFILE
from gateway.store.engine import Db
from tests.integration.catalog.conftest import Changes

BY = Author(caller=Operator(), correlation_id="test")


def _keep(wanted: Profile, _: Profile | None) -> Profile:
    return wanted


async def test_few_checks_run_at_once_and_the_first_refusal_counts(changes: Changes) -> None:
    """Ours: an application uses few connections to upstreams, and none after a refusal (CFG-1)."""
    running, most, checked = 0, 0, list[str]()
    are_all_running = anyio.Event()

    async def prepare(_: TenantId, __: CatalogContext, wanted: Profile, ___: Author) -> None:
        nonlocal running, most
        running, most = running + 1, max(most, running + 1)
        if running == PREPARED_AT_ONCE:
            are_all_running.set()
        await are_all_running.wait()
        running -= 1
        checked.append(wanted.name)
        if wanted.name in {"p7", "p3"}:
            raise ReferenceMissing(f"{wanted.name} is refused")

    target = CollectionTarget(collection=replace(PROFILES, prepare=prepare), rank=0)
    drafts: list[Draft] = []
    for place in range(30):
        one = PROFILE.make(f"p{place}", {})
        wanted = Wanted(target=target, key=one.name, compose=partial(_keep, one))
        before = one if place == 5 else None
        drafts.append(Draft(place=place, wanted=wanted, before=before, composed=one, refers=frozenset()))
    with pytest.raises(ReferenceMissing) as refused:
        await prepare_all(changes.tenant.id, changes.catalog, drafts, BY)
    assert refused.value.faults[0].pointer == "/objects/3"
    assert (len(checked), "p5" in checked, most) == (PREPARED_AT_ONCE, False, PREPARED_AT_ONCE)


async def test_reading_ends_at_the_first_error(changes: Changes) -> None:
    """Ours: after an error of a statement, its transaction is used no more; composing goes on (CFG-1)."""
    reads = list[str]()

    class Target(CollectionTarget):
        async def read(self, tenant: TenantId, db: Db, key: str, *, is_locked: bool = False) -> Profile | None:
            reads.append(key)
            if key == "unreadable":
                raise DatabaseUnavailable("a statement has failed")
            return None

    def refuse(_: Profile | None) -> Profile:
        raise ReferenceMissing("it cannot be composed")

    target = Target(collection=PROFILES, rank=0)

    async def read(*names: str) -> Sequence[str]:
        wanted = [Wanted(target=target, key=name, compose=refuse) for name in names]
        with pytest.raises(GatewayError) as refused:
            async with changes.catalog.store.transaction(changes.tenant.id) as db:
                await read_drafts(changes.tenant.id, db, ManifestSet(wanted=wanted))
        return [fault.pointer for fault in refused.value.faults]

    assert await read("a", "b") == ["/objects/0", "/objects/1"]
    assert await read("a", "unreadable", "b") == ["/objects/1"]
    assert reads == ["a", "b", "a", "unreadable"]


async def test_reading_before_the_transaction_waits_for_no_row(changes: Changes) -> None:
    """Ours: rows are locked below the tenant's lock only, so that two applications wait in one order (CFG-1)."""
    has_read = anyio.Event()

    def compose(current: Profile | None) -> Profile:
        has_read.set()
        return replace(current or PROFILE.make("a", {}), description="New.")

    target = CollectionTarget(collection=replace(PROFILES, is_locked=True), rank=0)
    given = ManifestSet(wanted=[Wanted(target=target, key="a", compose=compose)])
    tenant, store = changes.tenant.id, changes.catalog.store
    await PROFILES.create(tenant, changes.catalog, PROFILE.make("a", {}), by=BY)
    async with anyio.create_task_group() as group, store.transaction(tenant) as db:
        await PROFILES.rows.get(tenant, db, "a", locked=True)
        group.start_soon(partial(apply_manifests, tenant, changes.catalog, given, by=BY))
        with anyio.fail_after(10):  # only the error waits so long
            await has_read.wait()
    assert (await PROFILES.get(tenant, changes.catalog, "a")).description == "New."


async def test_an_equal_object_is_not_checked(changes: Changes) -> None:
    """Ours: an object that would not change needs no check of its URL; one that would needs it (CFG-1)."""

    async def prepare(_: TenantId, __: CatalogContext, ___: Profile, ____: Author) -> None:
        raise ReferenceMissing("no object is acceptable")

    target = CollectionTarget(collection=replace(PROFILES, prepare=prepare), rank=0)
    one = PROFILE.make("a", {})
    wanted = Wanted(target=target, key="a", compose=partial(_keep, one))
    draft = Draft(place=0, wanted=wanted, before=one, composed=one, refers=frozenset())
    [wanted] = await prepare_all(changes.tenant.id, changes.catalog, [draft], BY)
    assert wanted.compose(one) == one
    with pytest.raises(ReferenceMissing):
        await prepare_all(changes.tenant.id, changes.catalog, [replace(draft, before=None)], BY)
