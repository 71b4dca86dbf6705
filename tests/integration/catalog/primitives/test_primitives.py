"""A tenant's own primitives in the catalog: names taken once, references that lead somewhere, changes whole or not."""

from dataclasses import replace
from typing import Any

import anyio
import pytest

from gateway.catalog import tenants
from gateway.catalog.etags import tag_of
from gateway.catalog.kinds.primitives import TOOLS
from gateway.catalog.kinds.singletons import POLICY
from gateway.catalog.primitives import queries
from gateway.catalog.primitives.queries import Listed
from gateway.catalog.snapshots.python_primitives import PythonPrimitive
from gateway.catalog.sources import imports, sources
from gateway.catalog.sources.drafts import SourceDraft
from gateway.catalog.transaction import Author
from gateway.domain.events import CatalogMoved, ResourceUpdated
from gateway.domain.order import Order, join_position, write_moment
from gateway.domain.primitives import Family
from gateway.domain.tenancy.policy import Limits, Policy, Safety
from gateway.domain.tenancy.principals import Operator
from gateway.errors import (
    Conflict,
    LimitExceeded,
    NameTaken,
    NotFound,
    PreconditionFailed,
    ReferenceMissing,
)
from gateway.openapi.operation.names import RESERVED
from tests.integration.catalog.conftest import Changes
from tests.support.documents import many, pets
from tests.support.own_primitives import change_own, create_own, own
from tests.support.primitives import resource, static_tool, template, text_prompt, text_resource, tool

BY = Author(caller=Operator(), correlation_id="test")
URL = "https://pets.example"
PETS = SourceDraft(name="pets", document=pets(URL))
TOOL = Family.TOOL


async def _create(changes: Changes, body: dict[str, Any], family: Family = TOOL) -> Any:
    return await create_own(changes.tenant.id, changes.catalog, family, body, by=BY)


async def _get(changes: Changes, name: str, family: Family = TOOL) -> Listed:
    return await queries.get_listed(changes.tenant.id, changes.catalog, family, name)


async def _names(changes: Changes, family: Family = TOOL) -> list[str]:
    found = await queries.page_primitives(changes.tenant.id, changes.catalog, family, after=None, limit=200)
    return [listed.name for listed in found]


async def _revision(changes: Changes) -> int:
    return (await tenants.get_tenant(changes.tenant.id, changes.catalog)).revision


def _steps(*names: str) -> dict[str, Any]:
    calls: list[dict[str, Any]] = [{"call": {"tool": name}} for name in names]
    return {"kind": "steps", "steps": [*calls, {"return": {"text": "done"}}]}


class _Code:
    """Registrations that a test can change."""

    def __init__(self, *names: str, family: Family = TOOL) -> None:
        self.names = names
        self.family = family
        self.generation = 1

    def primitives(self) -> list[PythonPrimitive]:
        return [
            PythonPrimitive(
                family=self.family,
                name=name,
                definition=b'{"name":"' + name.encode() + b'"}',
                safety=Safety.MODERATE,
                safety_reasons=("code",),
            )
            for name in self.names
        ]


def _with_code(changes: Changes, code: _Code) -> Changes:
    return replace(changes, catalog=replace(changes.catalog, code=code))


async def test_one_of_many_simultaneous_requests_gets_a_name(changes: Changes) -> None:
    """Ours: a name is taken once, also by those who ask at the same moment, imports among them (PRG-4)."""
    taken: list[NameTaken] = []

    async def attempt(number: int) -> None:
        try:
            if number % 2:
                await _create(changes, static_tool("list_pets", f"{number}"))
            else:
                draft = replace(PETS, name=f"pets{number}")
                await imports.import_source(changes.tenant.id, changes.catalog, draft, by=BY)
        except NameTaken as refused:
            taken.append(refused)

    before = await _revision(changes)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            for number in range(8):
                tasks.start_soon(attempt, number)

    assert len(taken) == 7
    assert (await _names(changes)).count("list_pets") == 1
    assert await _revision(changes) == before + 1
    owners = {conflict.owner for refused in taken for conflict in refused.conflicts}
    assert len(owners) == 1


@pytest.mark.parametrize("name", sorted(RESERVED))
async def test_names_of_query_tools_cannot_be_taken(changes: Changes, name: str) -> None:
    """Ours: the seven built-in names cannot be taken (PRG-4)."""
    with pytest.raises(NameTaken) as refused:
        await _create(changes, static_tool(name))
    assert refused.value.conflicts[0].owner == "builtin"


async def test_a_taken_name_names_its_owner_and_the_original_stays(changes: Changes) -> None:
    """Ours: an import, a tool of the tenant's own and one of code are named in the refusal (PRG-4)."""
    await imports.import_source(changes.tenant.id, changes.catalog, PETS, by=BY)
    with_code = _with_code(changes, _Code("coded"))
    made = await _create(changes, static_tool("own"))
    for name, owner in (("list_pets", "source:pets"), ("own", "custom"), ("coded", "code")):
        with pytest.raises(NameTaken, match=name) as refused:
            await _create(with_code, static_tool(name, "other"))
        assert [(one.name, one.owner) for one in refused.value.conflicts] == [(name, owner)]
    assert (await _get(changes, "own")).id == made.id
    with pytest.raises(NameTaken) as import_refused:
        await imports.import_source(
            changes.tenant.id, with_code.catalog, SourceDraft(name="p", document=_one("coded")), by=BY
        )
    assert import_refused.value.conflicts[0].owner == "code"


def _one(operation_id: str) -> dict[str, Any]:
    document = many(URL, 1)
    next(iter(document["paths"].values()))["get"]["operationId"] = operation_id
    return document


async def test_other_families_have_names_of_their_own(changes: Changes) -> None:
    """Ours: a prompt and a tool of one name are no clash; a URI of one shape is taken (PRG-4, RES-2)."""
    await _create(changes, static_tool("same"))
    await _create(changes, text_prompt("same"), Family.PROMPT)
    handler = {"kind": "template", "text": "x", "mimeType": "text/plain"}
    await _create(changes, template("docs://{id}", handler), Family.TEMPLATE)
    with pytest.raises(NameTaken) as refused:
        await _create(changes, template("docs://{other}", handler), Family.TEMPLATE)
    assert refused.value.conflicts[0].owner == "custom:docs://{id}"
    await _create(changes, text_resource("docs://a"), Family.RESOURCE)
    with pytest.raises(NameTaken):
        await _create(changes, text_resource("docs://a"), Family.RESOURCE)


async def test_the_quota_counts_every_family_and_imports(changes: Changes) -> None:
    """Ours: `limits.primitives` is one number for everything (TEN-3)."""
    tenant, catalog = changes.tenant.id, changes.catalog

    async def allow(count: int) -> None:
        def revise(policy: Policy) -> Policy:
            return replace(policy, limits=Limits(primitives=count))

        await POLICY.change(tenant, catalog, revise, by=BY)

    await allow(2)
    await _create(changes, static_tool("a"))
    await _create(changes, text_prompt("a"), Family.PROMPT)
    with pytest.raises(LimitExceeded, match="has 2 of at most 2 primitives; 1 more"):
        await _create(changes, text_resource("docs://a"), Family.RESOURCE)
    await allow(5)
    with pytest.raises(LimitExceeded, match="has 2 of at most 5 primitives; 4 more"):
        await imports.import_source(tenant, catalog, PETS, by=BY)
    await allow(6)
    await imports.import_source(tenant, catalog, PETS, by=BY)
    await imports.update_source(tenant, catalog, "pets", lambda draft: draft, by=BY)
    with pytest.raises(LimitExceeded):
        await _create(changes, static_tool("b"))


async def test_a_reference_leads_somewhere_or_is_pointed_at(changes: Changes) -> None:
    """Ours: missing tools, sources, operations and credentials are refused at their place (PRG-3)."""
    await imports.import_source(changes.tenant.id, changes.catalog, PETS, by=BY)
    pinned: dict[str, Any] = {"kind": "openapi", "source": "pets", "operation": "list_pets", "arguments": {}}
    cases: list[tuple[dict[str, Any], list[str]]] = [
        (_steps("list_pets", "none", "x"), ["/handler/steps/1/call", "/handler/steps/2/call"]),
        ({**pinned, "source": "zoo"}, ["/handler/source"]),
        ({**pinned, "operation": "none"}, ["/handler/operation"]),
        ({**pinned, "arguments": {"a/b": 1}}, ["/handler/arguments/a~1b"]),
        ({"kind": "http", "method": "GET", "url": URL, "credential": "none"}, ["/handler/credential"]),
    ]
    for handler, pointers in cases:
        with pytest.raises(ReferenceMissing) as refused:
            await _create(changes, tool("x", handler))
        assert [fault.pointer for fault in refused.value.faults] == pointers
    for operation in ("list_pets", "GET /pets", "GET /pets"):
        await _create(changes, tool(f"x{len(await _names(changes))}", {**pinned, "operation": operation}))


async def test_requests_go_to_allowed_origins_only(changes: Changes) -> None:
    """Ours: the policy's origins hold for handlers, steps and completions when they are stored (CAL-4)."""

    async def allow(*origins: str) -> None:
        await POLICY.change(
            changes.tenant.id, changes.catalog, lambda policy: replace(policy, http_origins=origins), by=BY
        )

    handler = {"kind": "http", "method": "GET", "url": "https://API.example:443/x"}
    steps = {"kind": "steps", "steps": [{"http": {"method": "GET", "url": "https://b.example/"}}]}
    await allow("https://api.example/")
    await _create(changes, tool("a", handler))
    with pytest.raises(ReferenceMissing) as refused:
        await _create(changes, tool("b", steps))
    assert refused.value.faults[0].pointer == "/handler/steps/0/http/url"
    await allow()
    with pytest.raises(ReferenceMissing):
        await _create(changes, tool("b", handler))


async def test_levels_follow_the_called_operation(changes: Changes) -> None:
    """Ours: an import that turns a read into a delete raises the tools that depend on it (SAF-1)."""
    tenant, catalog = changes.tenant.id, changes.catalog
    await imports.import_source(tenant, catalog, PETS, by=BY)
    pinned: dict[str, Any] = {"kind": "openapi", "source": "pets", "operation": "list_pets", "arguments": {}}
    await _create(changes, tool("pinned", pinned))
    first = await _create(changes, tool("first", _steps("pinned")))
    assert (first.status.safety, first.status.safety_reasons) == (Safety.SAFE, ("calls pinned, which is safe",))
    second = await _create(changes, {**tool("second", _steps("first")), "safety": Safety.DANGEROUS})
    assert second.status.safety is Safety.DANGEROUS
    third = await _create(changes, tool("third", _steps("first", "second")))
    assert third.status.safety is Safety.DANGEROUS

    document = pets(URL)
    document["paths"]["/pets"]["delete"] = document["paths"]["/pets"].pop("get")
    await imports.update_source(
        tenant, catalog, "pets", lambda draft: replace(draft, document=document, allow_removals=True), by=BY
    )
    assert (await _get(changes, "first")).item.safety is Safety.DANGEROUS
    await sources.remove_source(tenant, catalog, "pets", by=BY)
    gone = (await _get(changes, "first")).item
    assert (gone.safety, gone.safety_reasons) == (Safety.MODERATE, ("calls pinned, which is moderate",))


async def test_a_primitive_with_a_missing_reference_can_be_disabled(changes: Changes) -> None:
    """Ours: switching is not held up by references, another handler is."""
    await _create(changes, static_tool("called"))
    made = await _create(changes, tool("caller", _steps("called")))
    await TOOLS.remove(changes.tenant.id, changes.catalog, "called", by=BY)

    async def update(**facts: Any) -> Any:
        return await change_own(changes.tenant.id, changes.catalog, TOOL, "caller", facts, by=BY)

    off = await update(enabled=False)
    assert (off.enabled, off.version, off.handler) == (False, 2, made.handler)
    with pytest.raises(ReferenceMissing):
        await update(definition={**static_tool("caller")["definition"], "title": "T"})


async def test_an_update_keeps_the_id_and_may_rename(changes: Changes) -> None:
    """Ours: an id survives another name, and the old name is free again (ADM-1)."""
    made = await _create(changes, static_tool("old"))
    await _create(changes, static_tool("other"))
    tenant, catalog = changes.tenant.id, changes.catalog
    with pytest.raises(NameTaken):
        await change_own(tenant, catalog, TOOL, "old", static_tool("other"), by=BY)
    renamed = await change_own(
        tenant, catalog, TOOL, "old", static_tool("new"), by=BY, expected=frozenset({tag_of(made)})
    )
    assert (renamed.id, renamed.name) == (made.id, "new")
    with pytest.raises(NotFound):
        await _get(changes, "old")
    with pytest.raises(PreconditionFailed):
        await TOOLS.remove(tenant, catalog, made.id, by=BY, expected=frozenset({tag_of(made)}))
    await _create(changes, static_tool("old"))


async def test_of_two_updates_at_once_one_is_a_conflict(changes: Changes) -> None:
    """Ours: a change that was judged against another version is not stored (ADM-1)."""
    await _create(changes, static_tool("say"))
    tenant, catalog = changes.tenant.id, changes.catalog
    outcomes: list[str] = []

    async def update(text: str) -> None:
        try:
            await change_own(tenant, catalog, TOOL, "say", static_tool("say", text), by=BY)
            outcomes.append("saved")
        except Conflict:
            outcomes.append("conflict")

    async with anyio.create_task_group() as tasks:
        for number in range(4):
            tasks.start_soon(update, str(number))
    found: Any = (await _get(changes, "say")).item
    assert found.version == 1 + outcomes.count("saved") >= 2
    assert len(outcomes) == 4


async def test_a_trial_stores_nothing_and_names_the_replaced_object(changes: Changes) -> None:
    """Ours: a dry run is judged like the real thing (PRG-3)."""
    before, tenant, catalog = await _revision(changes), changes.tenant.id, changes.catalog
    tried, replaces = await TOOLS.validate(tenant, catalog, own(TOOL, static_tool("say")), by=BY)
    assert (replaces, tried.status.safety) == (None, Safety.SAFE)
    assert (await _names(changes), await _revision(changes)) == ([], before)
    made = await _create(changes, static_tool("say"))
    _, replaces = await TOOLS.validate(tenant, catalog, own(TOOL, static_tool("say")), by=BY)
    assert replaces == made.id
    with pytest.raises(ReferenceMissing):
        await TOOLS.validate(tenant, catalog, own(TOOL, tool("x", _steps("none"))), by=BY)


async def test_imported_tools_and_code_are_not_changed_here(changes: Changes) -> None:
    """Ours: an object that is not the tenant's own is refused with the reason, and listed all the same (PRG-4)."""
    await imports.import_source(changes.tenant.id, changes.catalog, PETS, by=BY)
    with_code = _with_code(changes, _Code("coded", "list_pets"))
    tenant, catalog = changes.tenant.id, with_code.catalog
    for name, refusal in (("list_pets", Conflict), ("coded", Conflict), ("none", NotFound)):
        with pytest.raises(refusal):
            await change_own(tenant, catalog, TOOL, name, {}, by=BY)
        with pytest.raises(refusal):
            await TOOLS.remove(tenant, catalog, name, by=BY)
    hiding = await _get(with_code, "list_pets")
    assert hiding.hides_code
    coded = await _get(with_code, "coded")
    assert (coded.item.origin, coded.hides_code) == ("code", False)
    assert await _get(with_code, coded.id) == coded


async def test_a_list_holds_every_origin_once_in_order_in_any_parts(changes: Changes) -> None:
    """Ours: pages of any size make the same list, with imports, own tools and code between each other (RES-3)."""
    await imports.import_source(changes.tenant.id, changes.catalog, PETS, by=BY)
    for name in ("a", "m", "z"):
        await _create(changes, static_tool(name))
    with_code = _with_code(changes, _Code("b", "m", "list_pets", "zz"))
    whole = await _names(with_code)
    assert whole == sorted([*("a", "b", "m", "z", "zz"), *(await _names(changes))[1:-2]])
    for size in (1, 2, 3, 5):
        parts: list[str] = []
        after = None
        while True:
            page = await queries.page_primitives(changes.tenant.id, with_code.catalog, TOOL, after=after, limit=size)
            parts += [listed.name for listed in page]
            if len(page) < size:
                break
            after = page[-1].name
        assert parts == whole


async def test_hidden_code_is_absent_in_any_order_and_part(changes: Changes) -> None:
    """Ours: a resource of code that the tenant's own hides is in no part, wherever that one is sorted (RES-3)."""
    for name in ("c", "a", "b"):
        await _create(changes, text_resource(f"docs://{name}"), Family.RESOURCE)
    code = _Code("docs://b", "docs://x", "docs://c", family=Family.RESOURCE)
    with_code = _with_code(changes, code)
    for order in (Order(), Order(by="created_at"), Order(by="created_at", is_descending=True)):
        for size in (1, 2, 5):
            parts: list[Listed] = []
            after = None
            while True:
                page = await queries.page_primitives(
                    changes.tenant.id, with_code.catalog, Family.RESOURCE, after=after, limit=size, order=order
                )
                parts += page
                if len(page) < size:
                    break
                last = page[-1]
                after = join_position(*((last.name,) if order.by is None else (write_moment(last.created_at), last.id)))
            shown = [(one.name.removeprefix("docs://"), one.hides_code) for one in parts]
            own = [("c", True), ("a", False), ("b", True)]
            made = [("x", False), *own] if order.by else sorted([*own, ("x", False)])
            assert shown == (made[::-1] if order.is_descending else made), (order, size)


async def test_a_changed_resource_is_notified_as_an_update(changes: Changes) -> None:
    """Ours: a change of a resource's definition is an update of the resource (RES-5)."""
    made = await _create(changes, text_resource("docs://a"), Family.RESOURCE)
    changes.events.clear()
    new = text_resource("docs://a", "new")
    await change_own(changes.tenant.id, changes.catalog, Family.RESOURCE, made.id, new, by=BY)
    assert changes.events == [
        CatalogMoved(tenant=changes.tenant.id, revision=await _revision(changes)),
        ResourceUpdated(tenant=changes.tenant.id, uri="docs://a"),
    ]


async def test_the_longest_uri_can_be_stored_and_found(changes: Changes) -> None:
    """Ours: whatever a definition may have can be stored (RES-1)."""
    uri = "docs://" + "x" * 2041
    handler = {"kind": "static", "contents": [{"text": "x"}]}
    await _create(changes, resource(uri, handler, name="long", mimeType="text/plain"), Family.RESOURCE)
    assert await _names(changes, Family.RESOURCE) == [uri]
