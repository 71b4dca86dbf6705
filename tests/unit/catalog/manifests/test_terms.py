"""Terms of an application: objects that pruning may remove, its duration, and the values that a result shows."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from anyio.lowlevel import checkpoint

from gateway.catalog.kinds.profiles import PROFILES
from gateway.catalog.manifests.limits import MAX_CHANGES_SHOWN, within
from gateway.catalog.manifests.manifest import ManifestSet
from gateway.catalog.manifests.pruning import refuse_removals
from gateway.catalog.manifests.targets import CollectionTarget
from gateway.catalog.manifests.value_changes import digest_of, find_changes
from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.ownership import OwningSet
from gateway.domain.tenancy.principals import Operator
from gateway.domain.tenancy.profiles import Profile, Rule
from gateway.errors import Conflict, LimitExceeded
from gateway.kinds.kind import Kind
from gateway.kinds.manifests import PROTECTED_KINDS
from gateway.kinds.members import settable
from gateway.kinds.selections import PROFILE

PLATFORM = OwningSet("platform", is_operators=True)
ROOT = Path(__file__).parents[4]
MEMBERS = settable(Profile)


def _profile(**members: Any) -> Profile:
    return PROFILE.make("a", members)


def test_protected_objects_need_a_permission() -> None:
    """Ours: pruning removes no credential and no client without `prune_protected` (CFG-3)."""
    assert f"| {PROTECTED_KINDS} | `prune_protected` |" in (ROOT / "docs/configuration-as-code.md").read_text()
    kind: Kind[Any] = replace(PROFILE, is_protected=True)
    protected = CollectionTarget(collection=replace(PROFILES, kind=kind), rank=0)
    plain = CollectionTarget(collection=PROFILES, rank=0)
    given = ManifestSet(wanted=(), owner=PLATFORM, prune=True)
    unnamed = [(plain, _profile()), (protected, _profile())]
    with pytest.raises(Conflict) as refused:
        refuse_removals(given, unnamed, Operator())
    assert [fault.reason for fault in refused.value.faults] == ["would remove the profile a"]
    refuse_removals(given, unnamed[:1], Operator())
    refuse_removals(replace(given, prune_protected=True), unnamed, Operator())
    with pytest.raises(Conflict):
        refuse_removals(replace(given, prune_protected=True, max_deletions=1), unnamed, Operator())


async def test_the_tag_of_an_object_is_that_of_its_collection() -> None:
    """Ours: a plan has the entity tag that single requests have (CFG-2)."""
    db: Any = None

    def tag(one: Profile) -> str:
        return f"own.{one.name}"

    target = CollectionTarget(collection=replace(PROFILES, tag=tag), rank=0)
    assert await target.tag(TenantId("ten_1"), db, _profile()) == "own.a"


async def test_an_application_ends_in_time() -> None:
    """Ours: a transaction that takes too long is refused, so that it holds no tenant (CFG-1)."""
    with pytest.raises(LimitExceeded, match="transaction took more than 0 s"), within(0.0, "transaction"):
        await checkpoint()


def test_changes_are_those_of_single_values() -> None:
    """Ours: each change has a pointer; with too many, whole members are shown (CFG-1)."""
    before = _profile(description="Old.", include=(Rule(names=("a", "b")),))
    after = replace(before, description="", include=(Rule(names=("a", "c", "d")),))
    assert [(one.pointer, one.before, one.after) for one in find_changes(before, after, MEMBERS)] == [
        ("/description", "Old.", ""),
        ("/include/0/names/1", "b", "c"),
        ("/include/0/names/2", None, "d"),
    ]
    assert find_changes(before, before, MEMBERS) == []
    many = replace(before, include=(Rule(names=tuple(map(str, range(MAX_CHANGES_SHOWN + 5)))),))
    assert [one.pointer for one in find_changes(before, many, MEMBERS)] == ["/include"]
    assert {one.after for one in find_changes(before, None, MEMBERS)} == {None}


def test_a_digest_is_keyed_and_covers_differences_from_the_defaults() -> None:
    """Ours: a member that a later release adds with a default changes no digest, so it is no drift (CFG-3)."""
    one = _profile(description="Mine.")
    digest = digest_of(one, MEMBERS, key=b"k")
    assert digest == digest_of(one, [each for each in MEMBERS if each.name == "description"], key=b"k")
    assert digest != digest_of(one, MEMBERS, key=b"other")
    assert digest != digest_of(replace(one, description="Other."), MEMBERS, key=b"k")
