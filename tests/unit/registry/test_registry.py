"""Primitives that a registry lists and finds, by profile, and bindings that a newer snapshot keeps."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from gateway.catalog.snapshots.snapshot import Snapshot
from gateway.domain.identifiers import KeyId, ProfileId, TenantId
from gateway.domain.listed.names import ListedNames
from gateway.domain.primitives import Family
from gateway.domain.tenancy.keys import Scope
from gateway.domain.tenancy.policy import Decision, Policy, Safety
from gateway.domain.tenancy.principals import Principal
from gateway.domain.tenancy.profiles import DEFAULT_PROFILE, Profile, Rule
from gateway.domain.tools import PrimitiveOrigin
from gateway.errors import InvalidCursor
from gateway.handlers.python.registry import PythonHandler
from gateway.registry.paging import PagedList, PageLimits
from gateway.registry.registry import Registry
from gateway.registry.views import SnapshotView, ViewCache
from tests.support.registries import CURSORS, binder
from tests.support.snapshots import custom, imported, primitive, snapshot

ALICE = Principal(
    tenant=TenantId("ten_a"), slug="acme", key=KeyId("key_1"), subject="alice", scopes=frozenset({Scope.MCP})
)
README = primitive(Family.RESOURCE, "docs://readme")
ROWS = primitive(Family.TEMPLATE, "db://rows/{id}")
REVIEW = primitive(Family.PROMPT, "review")
READS = Profile(id=ProfileId("prf_1"), name="reads", include=(Rule(names=("list_*", "docs://*")),))


PAGE = 100


class Code:
    """One function under every name; completable arguments are declared."""

    def __init__(self, *, completes: bool) -> None:
        self._completes = completes

    def find(self, family: Family, name: str, slug: str) -> PythonHandler | None:
        return PythonHandler(
            function=lambda _: "x", is_async=False, complete=(lambda _: ["x"]) if self._completes else None
        )


def _registry(shown: Snapshot, profile: str = DEFAULT_PROFILE, code: Code | None = None) -> Registry:
    return Registry(ALICE, profile, SnapshotView(shown, binder(code), code, limits=PageLimits(items=PAGE)), CURSORS)


def _names(registry: Registry, family: Family) -> list[str]:
    return [item.name for item in registry.page(family, None).items]


FULL = snapshot(
    tools=[imported("list_pets"), imported("add_pet", method="POST"), custom("greet")],
    primitives=[README, ROWS, REVIEW],
    profiles=[READS],
)


def test_the_default_profile_shows_everything_in_order_of_names() -> None:
    """MCP: lists have a stable order; ours: `default` is everything (CAP-1)."""
    registry = _registry(FULL)

    assert _names(registry, Family.TOOL) == ["add_pet", "greet", "list_pets"]
    assert _names(registry, Family.RESOURCE) == ["docs://readme"]
    assert _names(registry, Family.TEMPLATE) == ["db://rows/{id}"]
    assert _names(registry, Family.PROMPT) == ["review"]


async def test_a_profile_finds_only_its_listed_primitives() -> None:
    """Ours: a primitive that a profile does not list cannot be called, read or got through it either (CAP-1)."""
    registry = _registry(FULL, "reads")

    assert _names(registry, Family.TOOL) == ["list_pets"]
    assert [registry.has(family) for family in Family] == [True, True, False, False]
    assert await registry.tool("list_pets") is not None
    assert await registry.tool("add_pet") is None
    assert await registry.resource("docs://readme") is not None
    assert await registry.resource("db://rows/7") is None
    assert await registry.prompt("review") is None
    assert await registry.template("db://rows/{id}") is None


async def test_profiles_share_bindings() -> None:
    """Ours: a profile is a selection, not a copy (CON-2)."""
    view = SnapshotView(FULL, binder(), None)
    one, other = Registry(ALICE, DEFAULT_PROFILE, view, CURSORS), Registry(ALICE, "reads", view, CURSORS)

    assert await one.tool("list_pets") is await other.tool("list_pets")
    assert view.compiled_count == 1
    assert one.shown is Registry(ALICE, DEFAULT_PROFILE, view, CURSORS).shown


def test_a_profile_that_is_gone_shows_nothing() -> None:
    """Ours: a client of a deleted profile sees an empty one, not everything (TEN-5)."""
    registry = _registry(FULL, "deleted")

    assert not registry.view.has_profile("deleted")
    assert not any(registry.has(family) for family in Family)


async def test_a_resource_is_found_by_its_uri_before_any_template() -> None:
    """Ours: a fixed resource wins over a template that makes its URI (RES-2)."""
    fixed = primitive(Family.RESOURCE, "db://rows/7")
    registry = _registry(snapshot(primitives=[fixed, ROWS]))

    exact, made = await registry.resource("db://rows/7"), await registry.resource("db://rows/8")

    assert exact is not None
    assert made is not None
    assert (exact.primitive.name, exact.variables) == ("db://rows/7", {})
    assert (made.primitive.name, made.uri, made.variables) == ("db://rows/{id}", "db://rows/8", {"id": "8"})
    assert await registry.resource("db://tables/8") is None


async def test_an_unreadable_definition_costs_one_primitive() -> None:
    """Ours: one bad definition costs one primitive, not the reading of all others (RES-2)."""
    unreadable = replace(primitive(Family.TEMPLATE, "db://{+a}{+b}/{id}"), handler=b'{"kind":7}')
    registry = _registry(snapshot(primitives=[unreadable, ROWS]))

    assert await registry.resource("db://rows/8") is not None
    assert await registry.resource("db://tables/8") is None
    assert not registry.is_interactive
    assert not registry.has_completions


async def test_the_first_template_in_order_that_fits_is_read() -> None:
    """Ours: only their order decides which of two templates answers (RES-2)."""
    narrow, wide = primitive(Family.TEMPLATE, "db://rows/a-{id}"), primitive(Family.TEMPLATE, "db://rows/{id}")
    registry = _registry(snapshot(primitives=[wide, narrow]))

    both, one = await registry.resource("db://rows/a-1"), await registry.resource("db://rows/b-1")

    assert both is not None
    assert one is not None
    assert (both.primitive.name, one.primitive.name) == ("db://rows/a-{id}", "db://rows/{id}")


async def test_a_template_of_a_live_source_comes_after_the_others() -> None:
    """Ours: a live source does not answer reads that a template of the tenant answers, whatever it is called."""
    wide = primitive(Family.TEMPLATE, "db://rows/a{id}", origin=PrimitiveOrigin.LIVE)
    registry = _registry(snapshot(primitives=[wide, primitive(Family.TEMPLATE, "db://rows/{id}")]))

    found = await registry.resource("db://rows/a1")

    assert found is not None
    assert found.primitive.name == "db://rows/{id}"


def test_readers_of_a_resource_are_notified() -> None:
    """Ours: an update of a resource goes to those who could read it, and policy counts (RES-4)."""
    secret = primitive(Family.RESOURCE, "docs://secret", safety=Safety.DANGEROUS)
    denying = Policy(dangerous=Decision.DENY)
    registry = _registry(snapshot(primitives=[README, secret, ROWS], policy=denying))

    assert registry.can_read("docs://readme")
    assert registry.can_read("db://rows/7")
    assert not registry.can_read("docs://secret")
    assert not registry.can_read("docs://missing")


def test_pages_follow_each_other_without_gaps() -> None:
    """Ours: a cursor is the last name shown; every item is on exactly one page (RES-3)."""
    resources = [primitive(Family.RESOURCE, f"docs://{number:04}") for number in range(2 * PAGE + 1)]
    registry = _registry(snapshot(primitives=resources))
    seen: list[str] = []
    cursor: str | None = None
    for size in (PAGE, PAGE, 1):
        page = registry.page(Family.RESOURCE, cursor)
        assert len(page.items) == size
        seen += [item.name for item in page.items]
        cursor = page.next_cursor

    assert cursor is None
    assert seen == [resource.name for resource in resources]


def test_a_cursor_survives_a_change_of_the_catalog() -> None:
    """Ours: cursors are keyset: what was added or removed meanwhile moves no other item (RES-3)."""
    names = [f"docs://{number:04}" for number in range(PAGE + 3)]
    before = _registry(snapshot(primitives=[primitive(Family.RESOURCE, name) for name in names]))
    cursor = before.page(Family.RESOURCE, None).next_cursor
    kept = [name for name in names if name != names[PAGE - 1]]
    after = _registry(snapshot(primitives=[primitive(Family.RESOURCE, name) for name in kept], revision=2))

    assert [item.name for item in after.page(Family.RESOURCE, cursor).items] == names[PAGE:]


@pytest.mark.parametrize("max_length", ["docs://" + "x" * 2000, "docs://" + "é" * 2000])
def test_long_names_have_cursors_too(max_length: str) -> None:
    """Ours: whatever is a legal URI is a legal place in a list (RES-3)."""
    resources = [primitive(Family.RESOURCE, f"{max_length}{number:04}") for number in range(PAGE + 1)]
    registry = _registry(snapshot(primitives=resources))
    first = registry.page(Family.RESOURCE, None)

    assert registry.page(Family.RESOURCE, first.next_cursor).items[0].name == resources[len(first.items)].name


def test_a_cursor_of_another_list_or_profile_is_refused() -> None:
    """Ours: a cursor belongs to tenant, profile and list (RES-3)."""
    many = [imported(f"list_{number:04}") for number in range(PAGE + 1)]
    many_docs = [primitive(Family.RESOURCE, f"docs://{number:04}") for number in range(PAGE + 1)]
    shown = snapshot(tools=many, primitives=many_docs, profiles=[READS])
    mine, reads = _registry(shown), _registry(shown, "reads")
    theirs = structs.replace(mine, principal=replace(ALICE, tenant=TenantId("ten_b")))
    cursor = mine.page(Family.TOOL, None).next_cursor

    assert len(mine.page(Family.TOOL, cursor).items) == 1
    for registry, family in ((mine, Family.RESOURCE), (reads, Family.TOOL), (theirs, Family.TOOL)):
        with pytest.raises(InvalidCursor):
            registry.page(family, cursor)


def test_definitions_are_listed_as_they_were_registered() -> None:
    """Ours: a page is the definitions, keyword for keyword (TDF-2)."""
    listed = PagedList([README])
    page = listed.page(None, str)

    assert page.objects(page.items) == [{"uri": "docs://readme", "name": "docs://readme", "mimeType": "text/plain"}]


@pytest.mark.parametrize(
    ("family", "same"),
    [(Family.TOOL, True), (Family.RESOURCE, False), (Family.TEMPLATE, False), (Family.PROMPT, True)],
)
def test_a_change_of_a_list_is_determined_by_its_family(family: Family, *, same: bool) -> None:
    """MCP: there is one notification per family; templates are resources (CAP-2)."""
    more = primitive(Family.TEMPLATE, "db://tables/{id}")
    before = _registry(FULL)
    after = _registry(replace(FULL, revision=2, templates=(*FULL.templates, more)))

    assert before.lists_the_same(after, family) is same
    assert before.lists_the_same(before, family)


def test_a_listed_name_that_changes_is_a_change_of_the_list() -> None:
    """Ours: a neighbour that no list shows may change a name; clients are notified (CAP-2, CLN-1)."""
    alone = replace(snapshot(tools=[custom("a.b")]), names=ListedNames(["a.b"]))
    beside = replace(alone, revision=2, names=ListedNames(["a.b", "a_b"]))

    assert not _registry(alone).lists_the_same(_registry(beside))
    assert _registry(alone).lists_the_same(_registry(replace(alone, revision=2, names=ListedNames(["a.b", "c"]))))


@pytest.mark.parametrize(
    ("items", "talks", "completes"),
    [
        ({"tools": [imported("list_pets"), custom("greet")]}, False, False),
        ({"tools": [custom("slow", {"kind": "steps", "steps": [{"log": "x"}]})]}, True, False),
        ({"primitives": [REVIEW, ROWS]}, False, False),
        ({"primitives": [primitive(Family.PROMPT, "ask", {"kind": "steps", "steps": []})]}, True, False),
        (
            {
                "primitives": [
                    primitive(Family.PROMPT, "p", {"kind": "template", "completions": {"a": {"values": ["x"]}}})
                ]
            },
            False,
            True,
        ),
        ({"primitives": [primitive(Family.RESOURCE, "r://1", origin=PrimitiveOrigin.LIVE)]}, True, False),
        ({"primitives": [primitive(Family.PROMPT, "remote", origin=PrimitiveOrigin.LIVE)]}, True, True),
    ],
)
def test_capabilities_of_a_profile_follow_from_its_primitives(
    items: Mapping[str, Any], *, talks: bool, completes: bool
) -> None:
    """MCP: capabilities are declared when they are there (CAP-1)."""
    registry = _registry(snapshot(**items))

    assert (registry.is_interactive, registry.has_completions) == (talks, completes)


@pytest.mark.parametrize("completes", [True, False])
def test_code_may_log_and_declares_its_completions(*, completes: bool) -> None:
    """Ours: a function may log whenever it likes; suggestions come of a function of their own (CAP-1)."""
    written = primitive(Family.PROMPT, "written", origin=PrimitiveOrigin.CODE)
    registry = _registry(snapshot(primitives=[written]), code=Code(completes=completes))

    assert registry.is_interactive
    assert registry.has_completions is completes


async def test_unchanged_primitives_are_not_bound_again() -> None:
    """Ours: one edit does not bind a thousand tools again (CON-2)."""
    views = ViewCache(binder())
    first = Registry(ALICE, DEFAULT_PROFILE, views.of(FULL), CURSORS)
    pets, greet = await first.tool("list_pets"), await first.tool("greet")
    readme, rows, review = (
        await first.resource("docs://readme"),
        await first.template("db://rows/{id}"),
        await first.prompt("review"),
    )
    edited = custom("greet", {"kind": "static", "content": [{"type": "text", "text": "y"}]})
    tools = [edited if tool.name == "greet" else tool for tool in FULL.tools]
    newer = replace(FULL, revision=2, tools=tuple(tools), by_name={tool.name: tool for tool in tools})
    second = Registry(ALICE, DEFAULT_PROFILE, views.of(newer), CURSORS)

    assert await second.tool("list_pets") is pets
    assert await second.tool("greet") is not greet
    assert await second.resource("docs://readme") is readme
    assert await second.template("db://rows/{id}") is rows
    assert await second.prompt("review") is review


@pytest.mark.parametrize(
    "changed",
    [{"policy": Policy(moderate=Decision.DENY)}, {"http_origins": frozenset({"https://a.example"})}],
)
async def test_a_change_of_policy_binds_everything_again(changed: Mapping[str, Any]) -> None:
    """Ours: a new policy and new allowed origins hold for the very next call (SAF-2)."""
    views = ViewCache(binder())
    before = await Registry(ALICE, DEFAULT_PROFILE, views.of(FULL), CURSORS).tool("greet")
    newer = replace(FULL, revision=2, **changed)

    assert await Registry(ALICE, DEFAULT_PROFILE, views.of(newer), CURSORS).tool("greet") is not before


async def test_other_code_under_the_same_name_is_bound_again() -> None:
    """Ours: a tool that was registered again runs its new function (PRG-1)."""
    code = Code(completes=False)
    shown = snapshot(tools=[custom("written", origin=PrimitiveOrigin.CODE), custom("greet")], code=1)
    views = ViewCache(binder(code), code=code)
    first = Registry(ALICE, DEFAULT_PROFILE, views.of(shown), CURSORS)
    written, greet = await first.tool("written"), await first.tool("greet")
    second = Registry(ALICE, DEFAULT_PROFILE, views.of(replace(shown, code=2)), CURSORS)

    assert await second.tool("written") is not written
    assert await second.tool("greet") is greet


async def test_an_older_snapshot_never_replaces_a_newer_one() -> None:
    """Ours: a request that was slow to load shows what it loaded, and no other does (CON-2)."""
    views = ViewCache(binder())
    newer = views.of(replace(FULL, revision=2))

    assert views.of(FULL) is not newer
    assert views.of(newer.snapshot) is newer
    views.forget(FULL.tenant)
    assert views.of(newer.snapshot) is not newer


def test_views_are_bounded() -> None:
    """Ours: unused tenants take no memory."""
    views = ViewCache(binder(), capacity=1)
    first = views.of(FULL)
    views.of(replace(FULL, tenant=TenantId("ten_b")))

    assert views.of(FULL) is not first


def test_schemas_are_handed_out_only_where_arguments_are_mirrored() -> None:
    """MCP: headers that mirror arguments are checked against the schema that asks for them (SRV-1)."""
    plain = imported("plain")
    mirroring = replace(
        imported("mirroring"),
        definition=b'{"name":"mirroring","description":"x","inputSchema":{"type":"object","properties":'
        b'{"id":{"type":"string","x-mcp-header":"Id"}}}}',
    )
    registry = _registry(snapshot(tools=[plain, mirroring]))

    assert registry.mirrored_schema("plain") is None
    assert registry.mirrored_schema("missing") is None
    schema = registry.mirrored_schema("mirroring")
    assert schema is not None
    assert schema["properties"]["id"]["x-mcp-header"] == "Id"
    assert registry.mirrored_schema("mirroring") is schema
