"""Access rules: primitives that a registry lists and finds for one caller."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from gateway.catalog.snapshots.access_coverage import with_access
from gateway.catalog.snapshots.composition import Renamed, index_old_names
from gateway.catalog.snapshots.snapshot import Snapshot
from gateway.domain.identifiers import IssuerId, KeyId, TenantId
from gateway.domain.primitives import Family
from gateway.domain.tenancy.access import AccessEffect, AccessRule, AccessRules, Role, RoleRule, may_concern, rights_of
from gateway.domain.tenancy.keys import Scope
from gateway.domain.tenancy.policy import Safety
from gateway.domain.tenancy.principals import InboundToken, Principal, pack_claims
from gateway.domain.tenancy.profiles import DEFAULT_PROFILE, Profile, Rule
from gateway.domain.tools import FULL_INPUT_META, PrimitiveOrigin
from gateway.errors import InvalidCursor
from gateway.identity.access_tokens import read_person
from gateway.registry.registry import Registry
from gateway.registry.views import SnapshotView
from tests.support.ids import new_profile_id
from tests.support.issuer import issuer_of
from tests.support.registries import CURSORS, binder
from tests.support.snapshots import custom, imported, primitive, snapshot

KEY = Principal(
    tenant=TenantId("ten_a"), slug="acme", key=KeyId("key_1"), subject="agent", scopes=frozenset({Scope.MCP})
)
ALIAS = custom("alias", {"kind": "openapi", "source": "api", "operation": "add_pet", "arguments": {}})
SHOWN = snapshot(
    tools=[imported("list_pets", tags=("pets",)), imported("add_pet", method="POST"), imported("pay", source="bank")],
    primitives=[
        primitive(Family.RESOURCE, "db://rows/7"),
        primitive(Family.TEMPLATE, "db://rows/{id}"),
        primitive(Family.PROMPT, "review"),
    ],
)
EVERYTHING = ["add_pet", "list_pets", "pay"]


def deny(*who: str, what: Rule | None = None, unless: Sequence[str] = ()) -> AccessRule:
    """A rule that denies."""
    return AccessRule(
        effect=AccessEffect.DENY, who=who or ("everyone",), what=what or Rule(), unless=tuple(unless), reason="why"
    )


def allow(*who: str, what: Rule | None = None, unless: Sequence[str] = ()) -> AccessRule:
    """A rule that allows."""
    return replace(deny(*who, what=what, unless=unless), effect=AccessEffect.ALLOW)


def person(*groups: str, subject: str = "corp:ada") -> Principal:
    """A person whose token names these groups."""
    found = replace(KEY, key=KeyId("key_ada"), subject=subject, is_person=True, packed_groups=pack_claims(groups))
    return replace(found, token=InboundToken(IssuerId("iss_1"), "token"))


def token(*scopes: str, subject: str = "corp:ada") -> Principal:
    """A person whose token has these scopes."""
    return replace(person(subject=subject), packed_scopes=pack_claims(scopes))


def registry(principal: Principal, *rules: AccessRule, default: str = "allow", base: Snapshot = SHOWN) -> Registry:
    """Primitives that a caller sees under these rules."""
    access = AccessRules(default=AccessEffect(default), rules=rules)
    view = SnapshotView(with_access(base, access), binder(), None)
    return Registry(principal, DEFAULT_PROFILE, view, CURSORS)


def tools(found: Registry) -> list[str]:
    """The names of the listed tools."""
    return [tool.name for tool in found.page(Family.TOOL, None).items]


BANK, PETS = Rule(sources=("bank",)), Rule(tags=("pets",))


@pytest.mark.parametrize(
    ("rules", "default", "caller", "expected"),
    [
        ([], "allow", KEY, EVERYTHING),
        ([], "deny", KEY, []),
        ([deny(what=BANK)], "allow", KEY, ["add_pet", "list_pets"]),
        ([allow(what=PETS)], "deny", KEY, ["list_pets"]),
        ([allow(), deny(what=BANK)], "deny", KEY, ["add_pet", "list_pets"]),
        ([deny(what=BANK), allow(what=BANK)], "allow", KEY, ["add_pet", "list_pets"]),
        ([deny("keys", what=BANK)], "allow", person(), EVERYTHING),
        ([deny("people", what=BANK)], "allow", KEY, EVERYTHING),
        ([deny("people", what=BANK)], "allow", person(), ["add_pet", "list_pets"]),
        ([deny("key:key_1")], "allow", KEY, []),
        ([deny("key:key_2")], "allow", KEY, EVERYTHING),
        ([deny("subject:corp:ada")], "allow", person(), []),
        ([deny("issuer:corp")], "allow", person(), []),
        ([deny("issuer:lab")], "allow", person(), EVERYTHING),
        ([deny(what=BANK, unless=["group:corp:finance"])], "allow", person("corp:finance"), EVERYTHING),
        ([deny(what=BANK, unless=["group:corp:finance"])], "allow", person("corp:eng"), ["add_pet", "list_pets"]),
        ([deny(what=BANK, unless=["group:corp:finance"])], "allow", KEY, ["add_pet", "list_pets"]),
        ([allow("group:corp:eng", what=PETS)], "deny", person("corp:eng"), ["list_pets"]),
        ([allow("group:corp:eng", what=PETS)], "deny", person("lab:eng", subject="lab:eve"), []),
        ([allow("scope:corp:read", what=PETS)], "deny", token("corp:read"), ["list_pets"]),
        ([allow("scope:corp:read", what=PETS)], "deny", token("corp:write", "corp:Read"), []),
        ([allow("scope:corp:read", what=PETS)], "deny", token("lab:read", subject="lab:eve"), []),
        ([allow("scope:corp:read", what=PETS)], "deny", person("corp:read"), []),
        ([deny(what=BANK, unless=["scope:corp:pay"])], "allow", token("corp:pay"), EVERYTHING),
        ([deny(what=BANK, unless=["scope:corp:pay"])], "allow", token("corp:read"), ["add_pet", "list_pets"]),
        ([deny(what=BANK, unless=["scope:corp:pay"])], "allow", person(), ["add_pet", "list_pets"]),
        ([deny(what=BANK, unless=["scope:corp:pay"])], "allow", KEY, ["add_pet", "list_pets"]),
        ([deny(what=Rule(safety=(Safety.MODERATE,)))], "allow", KEY, ["list_pets", "pay"]),
        ([deny(what=Rule(methods=("POST",)))], "allow", KEY, ["list_pets", "pay"]),
        ([deny(what=Rule(names=("*_pets", "pay")))], "allow", KEY, ["add_pet"]),
        ([deny(what=Rule(families=(Family.PROMPT,)))], "allow", KEY, EVERYTHING),
    ],
)
def test_a_deny_rule_wins_then_an_allow_rule_then_the_default(
    rules: list[AccessRule], default: str, caller: Principal, expected: list[str]
) -> None:
    """Ours: the order of rules has no effect, and a caller needs one entry of `who` and none of `unless` (IDN-4)."""
    assert tools(registry(caller, *rules, default=default)) == expected
    assert tools(registry(caller, *reversed(rules), default=default)) == expected


@pytest.mark.parametrize(
    "look_alike",
    ["corp:Finance", "corp:finance ", "corp:ﬁnance", "corp:finаnce", "corp:finance\n", "lab:finance", "finance"],
)
def test_a_group_that_looks_like_another_is_another(look_alike: str) -> None:
    """Ours: groups are compared exactly; letter case, compatibility and look-alike characters count (IDN-4)."""
    rule = allow("group:corp:finance", what=BANK)

    assert tools(registry(person(look_alike), rule, default="deny")) == []


def test_groups_cannot_smuggle_another_group() -> None:
    """Ours: no text of a group is read as two groups, or breaks the packing of groups (IDN-4)."""
    odd = ['corp:a","corp:finance', "corp:\ud800", "corp:a\ncorp:finance", "corp:a\0corp:finance", "x" * 5000]

    assert tools(registry(person(*odd), allow("group:corp:finance"), default="deny")) == []


def test_unknown_groups_are_taken_in_the_stricter_sense() -> None:
    """Ours: a task or an approved call goes on without its person's token, and never with more than it had (IDN-4)."""
    absent = replace(person(), packed_groups=None, token=None)

    assert tools(registry(absent, deny("group:corp:eng", what=BANK))) == ["add_pet", "list_pets"]
    assert tools(registry(absent, allow("group:corp:eng"), default="deny")) == []
    assert tools(registry(absent, deny(what=BANK, unless=["group:corp:eng"]))) == ["add_pet", "list_pets"]
    assert tools(registry(absent, allow(unless=["group:corp:eng"]), default="deny")) == []
    assert tools(registry(absent, deny("group:corp:eng", unless=["subject:corp:ada"]))) == EVERYTHING


@pytest.mark.parametrize(
    "claims",
    [
        {"groups": [f"g{number}" for number in range(1001)]},
        {"_claim_names": {"groups": "src1"}},
        {"groups": ["a"], "hasgroups": True},
        {"groups": " ".join(f"g{number}" for number in range(1001))},
    ],
)
def test_a_token_that_leaves_groups_out_has_unknown_ones(claims: dict[str, object]) -> None:
    """Ours: a person escapes no deny rule by membership of a thousand groups (IDN-4)."""
    issuer = issuer_of("corp")
    complete = read_person({"sub": "ada", "groups": ["a"]}, issuer, frozenset())
    partial = read_person({"sub": "ada", **claims}, issuer, frozenset())

    assert issuer.packed_groups(complete) == b'["corp:a"]'
    assert issuer.packed_groups(partial) is None


async def test_a_denied_primitive_cannot_be_found_in_any_way() -> None:
    """Ours: by name, from a handler, as a prompt, a resource or a template (IDN-4, TEN-5)."""
    found = registry(KEY, deny(what=Rule(names=("pay", "review", "db://rows/7"))))

    assert await found.tool("pay") is None
    assert await found.inner_tool("pay") is None
    assert await found.prompt("review") is None
    assert not found.has(Family.PROMPT)
    assert await found.resource("db://rows/7") is None
    assert not found.can_read("db://rows/7")
    assert await found.resource("db://rows/8") is not None
    assert found.can_read("db://rows/8")


@pytest.mark.parametrize(
    "uri",
    ["db://rows/7", "db://rows/%37", "DB://rows/7", "db://rows/７", "db://rows/./7", "db://rows/7?x", "db://rows/7;v"],
)
async def test_a_template_is_no_way_to_a_denied_resource(uri: str) -> None:
    """Ours: in none of the readings of its URI, whatever the rule tests (IDN-4, TEN-5)."""
    base = snapshot(primitives=[*SHOWN.resources, primitive(Family.TEMPLATE, "{+all}")])
    by_name = registry(KEY, deny(what=Rule(names=("db://rows/7",), families=(Family.RESOURCE,))), base=base)
    by_family = registry(KEY, deny(what=Rule(families=(Family.RESOURCE,))), base=base)

    for found in (by_name, by_family):
        assert await found.resource(uri) is None, uri
        assert not found.can_read(uri)
        assert await found.resource("db://rows/8") is not None


async def test_a_template_is_no_way_to_a_denied_uri() -> None:
    """Ours: a deny rule about a URI counts though no resource has this URI (IDN-4, TEN-5)."""
    found = registry(KEY, deny(what=Rule(names=("db://rows/9*",))))

    for uri in ("db://rows/9", "db://rows/99", "db://rows/%39"):
        assert await found.resource(uri) is None, uri
        assert not found.can_read(uri)
    assert await found.resource("db://rows/8") is not None


async def test_a_rule_about_an_operation_covers_its_declared_tools() -> None:
    """Ours: a declared tool is no way around a denial, and is not allowed by its operation's permission (IDN-4)."""
    operation = next(tool for tool in SHOWN.tools if tool.name == "add_pet")
    base = snapshot(tools=[*SHOWN.tools, ALIAS], operations={"api": {"add_pet": operation}})

    assert tools(registry(KEY, deny(what=Rule(names=("add_pet",))), base=base)) == ["list_pets", "pay"]
    assert tools(registry(KEY, allow(what=Rule(names=("add_pet",))), default="deny", base=base)) == ["add_pet"]
    assert await registry(KEY, deny(what=Rule(methods=("POST",))), base=base).tool("alias") is None


async def test_a_rule_follows_a_tool_that_is_renamed() -> None:
    """Ours: while calls can use the old name, rules that have it count for both names (IDN-4)."""
    pay = next(tool for tool in SHOWN.tools if tool.name == "pay")
    renamed = {"old_pay": Renamed(tool=pay, until=datetime.now(UTC) + timedelta(days=1))}
    base = replace(SHOWN, renamed=renamed, old_names=index_old_names(renamed))
    denied = registry(KEY, deny(what=Rule(names=("old_pay",))), base=base)

    assert tools(denied) == ["add_pet", "list_pets"]
    assert await denied.tool("old_pay") is None
    assert tools(registry(KEY, allow(what=Rule(names=("old_pay",))), default="deny", base=base)) == ["pay"]


def test_the_level_of_rules_is_the_one_that_policy_counts() -> None:
    """Ours: a tool that is declared safe and runs a dangerous operation is dangerous (IDN-4)."""
    disguised = replace(custom("wipe"), counted=Safety.DANGEROUS)
    base = snapshot(tools=[disguised])

    assert tools(registry(KEY, deny(what=Rule(safety=(Safety.DANGEROUS,))), base=base)) == []
    assert tools(registry(KEY, allow(what=Rule(safety=(Safety.SAFE,))), default="deny", base=base)) == []


def test_callers_with_the_same_rules_share_a_view_and_others_do_not() -> None:
    """Ours: lists are built per set of applying rules, not per person; without one, the common lists count (CON-2)."""
    access = AccessRules(rules=(deny("group:corp:eng", what=BANK),))
    view = SnapshotView(with_access(SHOWN, access), binder(), None)
    ada, bob = person("corp:eng", "corp:a"), person("corp:eng", "corp:b", subject="corp:bob")
    eve = person("corp:sales", subject="corp:eve")
    shown = [Registry(one, DEFAULT_PROFILE, view, CURSORS).shown for one in (ada, bob, eve, KEY)]

    assert shown[0] is shown[1]
    assert shown[2] is shown[3]
    assert shown[0] is not shown[2]
    assert shown[2].rules is None


def test_the_same_person_with_other_groups_has_another_view() -> None:
    """Ours: groups that change between two requests count from the next request on (IDN-4)."""
    access = AccessRules(rules=(deny("group:corp:eng", what=BANK),))
    view = SnapshotView(with_access(SHOWN, access), binder(), None)

    for _ in range(2):
        assert "pay" not in tools(Registry(person("corp:eng"), DEFAULT_PROFILE, view, CURSORS))
        assert "pay" in tools(Registry(person("corp:ops"), DEFAULT_PROFILE, view, CURSORS))


def test_a_token_with_other_scopes_has_another_view_and_other_results() -> None:
    """Ours: two tokens of one person share neither lists nor stored results, unless the same rules apply (IDN-4)."""
    access = AccessRules(rules=(deny("people", what=BANK, unless=["scope:corp:pay"]),))
    view = SnapshotView(with_access(SHOWN, access), binder(), None)
    pay, both, read = (
        Registry(one, DEFAULT_PROFILE, view, CURSORS)
        for one in (token("corp:pay"), token("corp:pay", "corp:read"), token("corp:read"))
    )

    assert ["pay" in tools(one) for one in (pay, both, read)] == [True, True, False]
    assert pay.result_scope == both.result_scope != read.result_scope
    [bank] = [tool for tool in SHOWN.tools if tool.name == "pay"]
    assert read.permitting_scopes(bank) == ["corp:pay"]
    assert Registry(KEY, DEFAULT_PROFILE, view, CURSORS).permitting_scopes(bank) == []
    assert (read.is_denied("pay"), pay.is_denied("pay"), read.is_denied("none")) == (True, False, False)


def test_scopes_of_a_token_are_those_of_its_issuer() -> None:
    """Ours: the name of the issuer is no part of the token, and no scope is read as another (IDN-4)."""
    claims = read_person({"sub": "ada"}, issuer_of("corp"), frozenset({"read", "lab:write", 'a","corp:b', "c\nd"}))

    assert issuer_of("corp").packed_scopes(claims) == b'["corp:a\\",\\"corp:b","corp:lab:write","corp:read"]'
    access = AccessRules(rules=(allow("scope:corp:a", "scope:corp.x:z"), deny(unless=["scope:corp:b", "scope:lab:c"])))
    assert [access.scopes_of_issuer(name) for name in ("corp", "lab", "cor")] == [("a", "b"), ("c",), ()]


def test_profiles_and_rules_restrict_together() -> None:
    """Ours: a profile shows no more than the rules, and the rules no more than the profile (CAP-1)."""
    profile = Profile(id=new_profile_id(), name="reads", include=(Rule(methods=("GET",)),))
    base = replace(SHOWN, profiles={"reads": profile})
    view = registry(KEY, deny(what=BANK), base=base).view

    assert tools(Registry(KEY, "reads", view, CURSORS)) == ["list_pets"]


def test_a_cursor_belongs_to_the_rules_that_apply() -> None:
    """Ours: a cursor of one view is none of another; a change of other rules does not end it (RES-3)."""
    many = snapshot(tools=[imported(f"op_{number:04}") for number in range(1050)])
    mine, others = deny("key:key_1", what=BANK), deny("key:key_2", what=BANK)
    cursor = registry(KEY, mine, base=many).page(Family.TOOL, None).next_cursor
    open_cursor = registry(KEY, base=many).page(Family.TOOL, None).next_cursor

    assert len(registry(KEY, others, mine, base=many).page(Family.TOOL, cursor).items) == 50
    for found, foreign in ((registry(KEY, base=many), cursor), (registry(KEY, mine, base=many), open_cursor)):
        with pytest.raises(InvalidCursor):
            found.page(Family.TOOL, foreign)


def test_a_denied_tool_does_not_show_itself_by_its_headers() -> None:
    """Ours: a tool that mirrors arguments into headers has no schema for a caller who may not use it (TEN-5)."""
    mirrored = replace(
        custom("mirrored"), definition=b'{"name":"mirrored","inputSchema":{"properties":{"a":{"x-mcp-header":"A"}}}}'
    )
    base = snapshot(tools=[mirrored])

    assert registry(KEY, base=base).mirrored_schema("mirrored") is not None
    assert registry(KEY, deny(), base=base).mirrored_schema("mirrored") is None


def test_a_denied_tool_for_details_is_not_added_to_a_list() -> None:
    """Ours: the tool that shortened schemas refer to comes with them, unless a rule denies it (IDN-4)."""
    details = custom("get_endpoint_details", origin=PrimitiveOrigin.BUILTIN)
    base = snapshot(tools=[replace(imported("long"), definition=FULL_INPUT_META.encode()), details])

    assert tools(registry(KEY, allow(what=Rule(names=("long",))), default="deny", base=base)) == [details.name, "long"]
    assert tools(registry(KEY, deny(what=Rule(names=(details.name,))), base=base)) == ["long"]


def test_a_denied_query_tool_is_not_added_to_a_profile() -> None:
    """Ours: query tools that a profile needs come with its operations, unless access rules hide them (IDN-4)."""
    query = custom("list_endpoints", origin=PrimitiveOrigin.BUILTIN)
    reads = Profile(id=new_profile_id(), name="reads", include=(Rule(methods=("GET",)),))
    base = replace(
        snapshot(tools=[query]), operations={"api": {"a": imported("list_pets")}}, profiles={reads.name: reads}
    )

    def seen(*rules: AccessRule) -> list[str]:
        view = SnapshotView(with_access(base, AccessRules(rules=rules)), binder(), None)
        return tools(Registry(KEY, reads.name, view, CURSORS))

    assert seen() == [query.name]
    assert seen(deny(what=Rule(names=(query.name,)))) == []


def test_a_change_of_rules_changes_the_lists_that_it_concerns() -> None:
    """Ours: `list_changed` is sent to clients whose list differs, and to no others (CAP-2)."""
    before = registry(KEY)
    same, other = registry(KEY, deny("people")), registry(KEY, deny(what=BANK))

    assert before.lists_the_same(same)
    assert not before.lists_the_same(other)
    assert before.lists_the_same(other, Family.PROMPT)


def test_200_rules_about_1000_tools_are_compiled_once() -> None:
    """Ours: a caller costs one comparison per primitive; a second caller of the same rules costs none (CON-2)."""
    many = snapshot(tools=[imported(f"op_{number:04}", source=f"s{number % 50}") for number in range(1000)])
    rules = [deny(f"group:corp:g{n}", what=Rule(sources=(f"s{n % 50}",), names=(f"op_*{n}",))) for n in range(200)]
    view = registry(KEY, *rules, base=many).view
    groups = [f"corp:g{n}" for n in range(0, 200, 3)]
    first = Registry(person(*groups), DEFAULT_PROFILE, view, CURSORS).shown
    second = Registry(person(*groups, "corp:other"), DEFAULT_PROFILE, view, CURSORS).shown

    assert first is second
    assert 0 < len(first.tools.items) < 1000


def test_roles_are_of_people_and_unknown_groups_give_no_role() -> None:
    """Ours: `who` and `unless` name people; a key has no role, and groups that are not known count against (IDN-4)."""
    leads = RoleRule(role=Role.APPROVE, who=("group:corp:leads", "subject:corp:bob"), unless=("group:corp:interns",))
    access = AccessRules(roles=(leads,))

    assert rights_of(access, person("corp:leads")).roles == {Role.APPROVE}
    assert rights_of(access, person(subject="corp:bob")).roles == {Role.APPROVE}
    assert rights_of(access, person("corp:leads", "corp:interns")).roles == set()
    assert rights_of(access, person("partner:leads")).roles == set()
    assert rights_of(access, replace(person(subject="corp:bob"), packed_groups=None)).roles == set()
    assert rights_of(AccessRules(roles=(replace(leads, unless=()),)), replace(KEY, subject="corp:bob")).roles == set()
    assert rights_of(AccessRules(), person("corp:leads")).roles == set()
    limited = RoleRule(role=Role.ADMINISTER, who=("people",), kinds=("tool",))
    more = replace(limited, who=("group:corp:leads",), kinds=("prompt",))
    for roles, kinds in (
        ((limited,), {"tool"}),
        ((limited, more), {"tool", "prompt"}),
        ((limited, replace(more, kinds=())), None),
        ((limited, leads), {"tool"}),
        ((leads,), None),
    ):
        assert rights_of(AccessRules(roles=roles), person("corp:leads")).kinds == kinds
    assert [may_concern(leads, name) for name in ("corp", "cor", "partner")] == [True, False, False]
    assert may_concern(replace(leads, who=("people",), unless=()), "partner")
