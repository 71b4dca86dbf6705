"""Checks before the transaction of an application, which may wait for upstreams."""

from dataclasses import replace
from functools import partial

import anyio
import pytest

from gateway.catalog.kinds.profiles import PROFILES
from gateway.catalog.manifests.drafts import Draft, prepare_all
from gateway.catalog.manifests.limits import PREPARED_AT_ONCE
from gateway.catalog.manifests.manifest import Wanted
from gateway.catalog.manifests.targets import CollectionTarget
from gateway.catalog.transaction import Author, CatalogContext
from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.principals import Operator
from gateway.domain.tenancy.profiles import Profile
from gateway.errors import PreconditionFailed, ReferenceMissing
from gateway.kinds.selections import PROFILE
from tests.integration.catalog.conftest import Changes

BY = Author(caller=Operator(), correlation_id="test")


def _keep(wanted: Profile, _: Profile | None) -> Profile:
    return wanted


async def test_few_checks_run_at_once_and_the_first_refusal_counts(changes: Changes) -> None:
    """Ours: an application uses few connections to upstreams, however many objects it has (CFG-1)."""
    running, most, checked = 0, 0, list[str]()

    async def prepare(_: TenantId, __: CatalogContext, wanted: Profile, ___: Author) -> None:
        nonlocal running, most
        running, most = running + 1, max(most, running + 1)
        await anyio.wait_all_tasks_blocked()
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
        drafts.append(Draft(place=place, wanted=wanted, before=before, composed=one))
    with pytest.raises(ReferenceMissing) as refused:
        await prepare_all(changes.tenant.id, changes.catalog, drafts, BY)
    assert refused.value.faults[0].pointer == "/objects/3"
    assert (len(checked), "p5" in checked, most) == (29, False, PREPARED_AT_ONCE)


async def test_an_object_that_was_not_prepared_is_not_written(changes: Changes) -> None:
    """Ours: an equal object needs no check; one that is changed by hand meanwhile is refused (CFG-1)."""

    async def prepare(_: TenantId, __: CatalogContext, ___: Profile, ____: Author) -> None:
        raise ReferenceMissing("no object is acceptable")

    target = CollectionTarget(collection=replace(PROFILES, prepare=prepare), rank=0)
    one = PROFILE.make("a", {})
    draft = Draft(place=0, wanted=Wanted(target=target, key="a", compose=partial(_keep, one)), before=one, composed=one)
    [wanted] = await prepare_all(changes.tenant.id, changes.catalog, [draft], BY)
    assert wanted.compose(one) == one
    for current in (None, replace(one, description="By hand.")):
        with pytest.raises(PreconditionFailed):
            wanted.compose(current)
    with pytest.raises(ReferenceMissing):
        await prepare_all(changes.tenant.id, changes.catalog, [replace(draft, before=None)], BY)
