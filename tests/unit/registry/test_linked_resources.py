"""Resources that no list contains, because a tool of a live source has linked to them: who may read them."""

from datetime import UTC, datetime

import pytest

from gateway.domain.identifiers import LiveSourceId, ProfileId, TenantId
from gateway.domain.live_sources import LiveKind, LiveSource
from gateway.domain.primitives import Family
from gateway.domain.tenancy.access import AccessRule
from gateway.domain.tenancy.policy import Decision, Policy, PolicyRule
from gateway.domain.tenancy.profiles import DEFAULT_PROFILE, Profile, Rule
from gateway.registry.registry import Registry
from gateway.registry.views import SnapshotView
from tests.support.registries import CURSORS, binder
from tests.support.snapshots import primitive, snapshot
from tests.unit.registry.test_access import KEY, allow, deny, registry

NOW = datetime(2026, 11, 28, tzinfo=UTC)
NOTES = LiveSource(
    tenant=TenantId("ten_a"),
    id=LiveSourceId("liv_1"),
    name="notes",
    kind=LiveKind.MCP,
    settings={"url": "https://notes.test/mcp"},
    exclude=("note://secret/*",),
    created_at=NOW,
    updated_at=NOW,
)
BASE = snapshot(
    primitives=[primitive(Family.RESOURCE, "note://own")],
    profiles=[
        Profile(id=ProfileId("prf_1"), name="without", exclude=(Rule(sources=("notes",)),)),
        Profile(id=ProfileId("prf_2"), name="reads", include=(Rule(names=("note://*",)),)),
    ],
    policy=Policy(rules=(PolicyRule(decision=Decision.DENY, tool="note://denied*"),)),
    live_sources={NOTES.id: NOTES},
)


async def linked(found: Registry, uri: str = "note://1", source: str = NOTES.id) -> bool:
    """True if the caller of this registry may read the URI at the source."""
    bound = await found.linked_resource(uri, LiveSourceId(source))
    return bound is not None and bound.policy.judge({}).decision is not Decision.DENY


@pytest.mark.parametrize(("profile", "is_readable"), [(DEFAULT_PROFILE, True), ("without", False), ("reads", True)])
async def test_a_profile_selects_linked_resources_by_uri_and_source(profile: str, is_readable: bool) -> None:
    """DYN-5: a link permits nothing that the profile does not."""
    found = Registry(KEY, profile, SnapshotView(BASE, binder(), None), CURSORS)
    assert await linked(found) is is_readable


async def test_source_policy_and_patterns_apply_to_linked_resources() -> None:
    """DYN-5: an excluded URI, a denied one, and one of a source that is gone are not read."""
    found = Registry(KEY, DEFAULT_PROFILE, SnapshotView(BASE, binder(), None), CURSORS)
    assert await linked(found)
    assert not await linked(found, "note://secret/1")
    assert not await linked(found, "note://denied/1")
    assert not await linked(found, source="liv_gone")


@pytest.mark.parametrize(
    ("rule", "default", "is_readable"),
    [
        (deny(what=Rule(sources=("notes",))), "allow", False),
        (deny(what=Rule(names=("NOTE://1*",))), "allow", False),
        (deny(what=Rule(names=("note://own",))), "allow", True),
        (deny(what=Rule(sources=("others",))), "allow", True),
        (allow(what=Rule(sources=("others",))), "deny", False),
        (allow(what=Rule(sources=("notes",))), "deny", True),
    ],
)
async def test_access_rules_apply_to_linked_resources(rule: AccessRule, default: str, is_readable: bool) -> None:
    """IDN-4: as to what a list contains, by source and by URI."""
    found = registry(KEY, rule, default=default, base=BASE)
    assert await linked(found) is is_readable
    assert not await linked(registry(KEY, deny(what=Rule(names=("note://own",))), base=BASE), "NOTE://OWN")
