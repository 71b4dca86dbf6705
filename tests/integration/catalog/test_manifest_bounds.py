"""Bounds of one application: the work of the event loop at once, the size of its result, and its time."""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import anyio
import msgspec

from gateway.catalog.manifests.apply import apply_manifests
from gateway.catalog.manifests.drafts import Draft
from gateway.catalog.manifests.limits import MAX_SHOWN_BYTES, MAX_SHOWN_CHANGES
from gateway.catalog.manifests.manifest import ManifestSet, Wanted
from gateway.catalog.manifests.owners import Owners
from gateway.catalog.manifests.targets import TARGETS
from gateway.catalog.transaction import Author
from gateway.domain.tenancy.ownership import OwningSet
from gateway.domain.tenancy.principals import Operator
from gateway.domain.tenancy.profiles import Profile, Rule
from gateway.kinds.selections import PROFILE
from tests.integration.catalog.conftest import Changes
from tests.support.loop_work import loop_work

BY = Author(caller=Operator(), correlation_id="test")
PLATFORM = OwningSet("platform", is_operators=True)
MAX_CALLS = 20_000
"""Python functions that the event loop may enter between two of its iterations: about 5 ms."""


def _keep(wanted: Profile, current: Profile | None) -> Profile:
    return wanted if current is None else replace(wanted, id=current.id, version=current.version)


def _wanted(name: str, **members: object) -> Wanted:
    return Wanted(target=TARGETS["profile"], key=name, compose=partial(_keep, PROFILE.make(name, members)))


async def test_an_application_leaves_the_event_loop_to_others(changes: Changes) -> None:
    """Ours: the work between two iterations of the event loop has a bound, however large the objects are (CFG-1)."""
    rules = tuple(Rule(names=(f"a{number}", "b*")) for number in range(50))
    wanted = [_wanted(f"p{number}", include=rules, exclude=rules) for number in range(100)]
    async with loop_work() as work:
        for is_dry_run in (False, True):
            given = ManifestSet(wanted=wanted, is_dry_run=is_dry_run)
            await apply_manifests(changes.tenant.id, changes.catalog, given, by=BY)
    assert 0 < work.most_calls < MAX_CALLS


async def test_a_result_is_bounded(changes: Changes) -> None:
    """Ours: a small request has a small result, however large and many the objects are that it changes (CFG-1)."""
    large = tuple(Rule(names=tuple("x" * 200 for _ in range(100))) for _ in range(3))
    many = tuple(Rule(names=(f"a{number}",)) for number in range(45))
    tenant, catalog = changes.tenant.id, changes.catalog
    wanted = [_wanted(f"p{place}", description=str(place), exclude=large, include=many) for place in range(60)]
    await apply_manifests(tenant, catalog, ManifestSet(wanted=wanted, owner=PLATFORM), by=BY)
    pruning = ManifestSet(wanted=wanted[:1], owner=PLATFORM, prune=True, max_deletions=100, is_dry_run=True)
    emptying = ManifestSet(wanted=[_wanted(f"p{place}") for place in range(60)], is_dry_run=True)
    for given, number in ((pruning, 59), (emptying, 60)):
        done = await apply_manifests(tenant, catalog, given, by=BY)
        changed = [one for one in done.objects if one.changes]
        assert (len(done.objects), len(changed)) == (60, number)
        assert len(msgspec.json.encode(done.objects)) < MAX_SHOWN_BYTES + 60 * 500
        assert sum(len(one.changes) for one in changed) <= MAX_SHOWN_CHANGES + 60
        cut = [one for one in changed[0].changes if one.is_cut]
        assert {(one.pointer.split("/")[1], one.before, one.after) for one in cut} == {("exclude", None, None)}
    renamed = [_wanted(f"p{place}", exclude=large, include=many[::-1]) for place in range(60)]
    done = await apply_manifests(tenant, catalog, ManifestSet(wanted=renamed, is_dry_run=True), by=BY)
    assert sum(len(one.changes) for one in done.objects) <= MAX_SHOWN_CHANGES + 60
    assert [(one.pointer, one.is_cut) for one in done.objects[-1].changes] == [("", True)]


async def test_a_commit_is_not_refused(changes: Changes) -> None:
    """Ours: time is bounded until the commit; what follows it cannot turn a stored change into a refusal (CFG-1)."""
    before, after = list[float](), list[float]()

    def compose(current: Profile | None) -> Profile:
        before.append(anyio.current_effective_deadline())
        return replace(current or PROFILE.make("a", {}), description="By hand.")

    def count_drift(_: str) -> None:
        after.append(anyio.current_effective_deadline())

    catalog = replace(changes.catalog, count_drift=count_drift)
    await apply_manifests(changes.tenant.id, catalog, ManifestSet(wanted=[_wanted("a")], owner=PLATFORM), by=BY)
    given = ManifestSet(wanted=[Wanted(target=TARGETS["profile"], key="a", compose=compose)])
    await apply_manifests(changes.tenant.id, catalog, given, by=BY)
    assert (max(before) < math.inf, after) == (True, [math.inf])


async def test_secrets_are_compared_in_steps(changes: Changes) -> None:
    """Ours: the event loop runs others between the comparisons of two objects (CFG-1)."""
    wanted: Sequence[Wanted] = [_wanted(f"p{number}") for number in range(50)]
    drafts = [
        Draft(place=place, wanted=one, before=None, composed=one.compose(None), refers=frozenset())
        for place, one in enumerate(wanted)
    ]
    owners = Owners(changes.catalog, ManifestSet(wanted=wanted, owner=PLATFORM), ())
    async with loop_work() as work:
        assert await owners.keep_secrets(drafts) == drafts
    assert work.iterations >= len(drafts)
