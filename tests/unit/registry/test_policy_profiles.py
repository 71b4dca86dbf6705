"""Rules for one profile: each profile has its own bound primitives, and only then."""

from gateway.definitions.json_schema.validator_cache import Validators
from gateway.domain.identifiers import KeyId, TenantId
from gateway.domain.primitives import Family
from gateway.domain.tenancy.keys import Scope
from gateway.domain.tenancy.policy import ArgumentCondition, ConditionOperator, Decision, Policy, PolicyRule
from gateway.domain.tenancy.principals import Principal
from gateway.domain.tenancy.profiles import DEFAULT_PROFILE
from gateway.handlers.binding import Binder
from gateway.registry.cursors import Cursors
from gateway.registry.registry import Registry
from gateway.registry.views import SnapshotView
from gateway.upstream.client import UpstreamClient
from tests.support.handler_bench import Secrets
from tests.support.snapshots import custom, imported, primitive, snapshot

ALICE = Principal(
    tenant=TenantId("ten_a"), slug="acme", key=KeyId("key_1"), subject="alice", scopes=frozenset({Scope.MCP})
)
STAFF = PolicyRule(tool="list_*", profile="staff", decision=Decision.DENY)


def _view(*rules: PolicyRule) -> SnapshotView:
    shown = snapshot(
        tools=[imported("list_pets"), custom("greet")],
        primitives=[primitive(Family.RESOURCE, "docs://a"), primitive(Family.TEMPLATE, "file:///{+path}")],
        policy=Policy(rules=rules),
    )
    return SnapshotView(shown, Binder(UpstreamClient(), Secrets(), Validators()), None)


async def _decision(view: SnapshotView, profile: str) -> Decision:
    bound = await Registry(ALICE, profile, view, Cursors(b"k" * 32)).operation(view.snapshot.by_name["list_pets"])
    return bound.policy.judgement.decision


async def test_a_rule_for_a_profile_is_for_that_profile_only() -> None:
    """Ours: the same tool is denied in one profile and allowed in another, whichever was bound first (SAF-5)."""
    for order in (["staff", DEFAULT_PROFILE, "other"], [DEFAULT_PROFILE, "other", "staff"]):
        view = _view(STAFF)
        found = {profile: await _decision(view, profile) for profile in order}

        assert found == {"staff": Decision.DENY, DEFAULT_PROFILE: Decision.ALLOW, "other": Decision.ALLOW}


async def test_profiles_share_bindings_without_such_rules() -> None:
    """Ours: rules for all profiles cost no memory for each of them."""
    view = _view(PolicyRule(tool="list_*", decision=Decision.DENY))

    assert view.bound("staff") is view.bound(DEFAULT_PROFILE)
    assert await _decision(view, "staff") is Decision.DENY


def test_a_denied_resource_cannot_be_followed() -> None:
    """Ours: a subscription needs a URI that may be read, also where the rule is about a template's variable (SAF-5)."""
    condition = ArgumentCondition(pointer="/path", operator=ConditionOperator.STARTS_WITH, value="etc/")
    shown = _view(
        PolicyRule(tool="docs://a", decision=Decision.DENY, profile="staff"),
        PolicyRule(tool="file:///{+path}", when=(condition,), decision=Decision.DENY),
    )
    registries = {name: Registry(ALICE, name, shown, Cursors(b"k" * 32)) for name in (DEFAULT_PROFILE,)}

    assert registries[DEFAULT_PROFILE].can_read("docs://a")
    assert registries[DEFAULT_PROFILE].can_read("file:///tmp/a")
    assert not registries[DEFAULT_PROFILE].can_read("file:///etc/a")
    assert not registries[DEFAULT_PROFILE].can_read("file:///ETC/a")
