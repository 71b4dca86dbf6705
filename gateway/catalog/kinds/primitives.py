"""A tenant's own tools, resources, resource templates and prompts: checks, levels, events and foreign origins.

Only the tenant's own primitives are stored and can be changed here. Lists and reads also show imported and built-in
tools, and the primitives of Python code and of live sources.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, cast

from gateway.catalog.calls.approvals import supersede_approvals
from gateway.catalog.kinds.engines.collection import Collection
from gateway.catalog.kinds.engines.special_functions import tag_of_kind
from gateway.catalog.live.visible_primitives import visible_live
from gateway.catalog.primitives.constraints import check_fit, code_of
from gateway.catalog.primitives.queries import Listed, get_listed, page_primitives
from gateway.catalog.primitives.safety_levels import with_effective_levels
from gateway.catalog.primitives.validation import prepare
from gateway.catalog.transaction import Author, CatalogContext, OpenChanges
from gateway.domain.events import ResourceUpdated, TemplateChanged
from gateway.domain.fairness.thread_kinds import CATALOG_CHANGES
from gateway.domain.fairness.threads import run_in_thread
from gateway.domain.identifiers import TenantId
from gateway.domain.order import KEYED, Order
from gateway.domain.primitives import Family, Primitive
from gateway.domain.tenancy.own_primitives import (
    Own,
    OwnPrimitive,
    ToolDocument,
    key_of,
    to_primitive,
)
from gateway.domain.tools import Tool
from gateway.errors import Conflict
from gateway.kinds.kind import Kind
from gateway.kinds.members import status_of
from gateway.kinds.primitives import PROMPT, RESOURCE, TEMPLATE, TOOL
from gateway.openapi.operation.names import RESERVED
from gateway.store import operations
from gateway.store.engine import Db
from gateway.store.kinds import primitives as rows
from gateway.store.kinds.rows import Rows
from gateway.store.sources import sources

_ACTIONS = {Family.TOOL: "call", Family.RESOURCE: "read", Family.PROMPT: "get"}
"""The action of an approval for each family; approvals for URIs of a resource template expire."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrimitiveCollection(Collection[Own]):
    """The primitives of one family, of all origins."""

    async def get(self, tenant: TenantId, catalog: CatalogContext, name: str) -> Own:
        """The primitive of this name or id; also by an old name that clients can still call.

        Raises:
            NotFound: the tenant has no such primitive.
        """
        found = await get_listed(tenant, catalog, self.kind.of.family, name, takes_old_names=True)
        return show_listed(self.kind, found)

    async def page(
        self, tenant: TenantId, catalog: CatalogContext, /, *, after: str | None, limit: int, order: Order = KEYED
    ) -> Sequence[Own]:
        """One page of the primitives, by default sorted by key."""
        found = await page_primitives(tenant, catalog, self.kind.of.family, after=after, limit=limit, order=order)
        return [show_listed(self.kind, one) for one in found]

    async def validate(
        self, tenant: TenantId, catalog: CatalogContext, wanted: Own, *, by: Author
    ) -> tuple[Own, str | None]:
        """Check a primitive without storing it, as a replacement of the one of this name, if any.

        Return it with its status, and the id of the one that it would replace.

        Raises:
            DefinitionInvalid, NameTaken, LimitExceeded, ReferenceMissing: it could not be stored.
        """
        ready = await self._prepare(tenant, catalog, wanted, by)
        async with catalog.store.reading(tenant) as db:
            found = await self.rows.get(tenant, db, key_of(ready))
            own = found if found is not None and key_of(found) == key_of(ready) else None
            await check_fit(tenant, catalog, db, ready, own=own)
            [listed] = await _with_levels(tenant, catalog, db, [ready])
        return show_listed(self.kind, listed), None if own is None else own.id


def show_listed(kind: Kind[Own], listed: Listed) -> Own:
    """A primitive of any origin, with its status."""
    item = listed.item
    stored = item if isinstance(item, Primitive) else None
    declared = None if listed.override is None else listed.override.safety
    build = cast("Callable[..., Own]", kind.of)
    return build(
        **{kind.keyed: listed.name},
        id=listed.id,
        definition=item.definition,
        handler=b"" if stored is None else stored.handler,
        safety=declared if stored is None else stored.override,
        enabled=listed.is_enabled,
        version=1 if stored is None else stored.version,
        created_at=None if stored is None else stored.created_at,
        updated_at=None if stored is None else stored.updated_at,
        status=_status(kind, listed),
    )


def _status(kind: Kind[Own], listed: Listed) -> Any:
    item, document = listed.item, listed.document
    facts: dict[str, object] = {
        "safety": item.safety,
        "safety_reasons": item.safety_reasons,
        "origin": item.origin,
        "source": item.source_name,
        "hides_code": listed.hides_code,
        "tag": listed.tag,
    }
    if isinstance(item, Tool):
        facts |= {
            "operation": item.identity,
            "hidden": listed.is_hidden,
            "override": listed.override,
            "document": None
            if document is None
            else ToolDocument(safety=document.safety, definition=document.definition),
        }
    build = cast("Callable[..., Any]", status_of(kind.of))
    return build(**facts)


async def _prepare(tenant: TenantId, catalog: CatalogContext, wanted: Own, by: Author) -> Own | None:
    """Validate a primitive, unless its definition and its handler are those that are stored."""
    del by
    async with catalog.store.reading(tenant) as db:
        stored = await rows.ROWS[wanted.family].get(tenant, db, wanted.id)
    if stored is not None and not _is_redefined(stored, wanted):
        return None
    return await run_in_thread(CATALOG_CHANGES, tenant, prepare, wanted)


async def _check(opened: OpenChanges, current: OwnPrimitive | None, wanted: OwnPrimitive) -> None:
    if current is None or _is_redefined(current, wanted):
        await check_fit(opened.tenant, opened.catalog, opened.db, wanted, own=current)


async def _written(opened: OpenChanges, before: OwnPrimitive | None, after: OwnPrimitive | None) -> None:
    """End the open approvals of a redefined or removed primitive, and publish changes of resources and templates.

    A removal is published because a template may then provide the content of the removed URI.
    """
    both = [one for one in (before, after) if one is not None]
    family = both[0].family
    if before is not None and (after is None or _is_redefined(before, after)) and family in _ACTIONS:
        end = partial(supersede_approvals, opened.tenant, opened.catalog, [key_of(before)], action=_ACTIONS[family])
        opened.later.append(partial(end, before=datetime.now(UTC)))
    for key in dict.fromkeys(map(key_of, both)):
        if family is Family.RESOURCE:
            opened.announce(ResourceUpdated(tenant=opened.tenant, uri=key))
        elif family is Family.TEMPLATE:  # guard: changed-template-notified
            opened.announce(TemplateChanged(tenant=opened.tenant, template=key))


async def _describe(
    opened: OpenChanges, before: OwnPrimitive | None, after: OwnPrimitive | None
) -> Mapping[str, object]:
    """The declared and the assessed level, and the level that the policy counts, for the audit entry."""
    if after is None:
        return {}
    [listed] = await _with_levels(opened.tenant, opened.catalog, opened.db, [after])
    effective = cast("Primitive", listed.item)
    levels = {"assessed": effective.assessed, "safety": after.safety}
    if effective.counted is not None:
        levels["counted"] = effective.counted
    renamed = {"name": key_of(after)} if before is not None and key_of(before) != key_of(after) else {}
    return {"enabled": after.enabled, **{name: level and level.value for name, level in levels.items()}, **renamed}


def _is_redefined(before: OwnPrimitive, after: OwnPrimitive) -> bool:
    return (before.definition, before.handler) != (after.definition, after.handler)


async def _read_statuses(tenant: TenantId, catalog: CatalogContext, found: Sequence[Own]) -> Sequence[object]:
    """The status of each primitive; that of a stored one is computed."""
    statuses: list[Any] = [getattr(one, "status") for one in found]  # noqa: B009  # no member of `OwnPrimitive`
    waiting = [place for place, status in enumerate(statuses) if not status.tag]
    if waiting:
        async with catalog.store.reading(tenant) as db:
            listed = await _with_levels(tenant, catalog, db, [found[place] for place in waiting])
        for place, one in zip(waiting, listed, strict=True):
            statuses[place] = _status(COLLECTIONS[found[place].family].kind, one)
    return statuses


async def _with_levels(
    tenant: TenantId, catalog: CatalogContext, db: Db, own: Sequence[OwnPrimitive]
) -> Sequence[Listed]:
    code = await code_of(tenant, catalog, db)
    live = await visible_live(tenant, db, code)
    effective = await with_effective_levels(tenant, db, [to_primitive(one) for one in own], [*code, *live])
    names = {(one.family, one.name) for one in code}
    return [Listed(item=one, hides_code=(one.family, one.name) in names) for one in effective]


async def _refuse_foreign(tenant: TenantId, catalog: CatalogContext, db: Db, name: str, *, family: Family) -> None:
    """Refuse a change of a primitive that is imported, built in, registered in code, or of a live source.

    Raises:
        Conflict: it is.
    """
    words = family.replace("_", " ")
    if family is Family.TOOL and await operations.find_named(tenant, db, name) is not None:
        raise Conflict("the tool is imported; override its members, change its document, or remove its source")
    code = await code_of(tenant, catalog, db)
    if any(one.family is family and name in {one.name, one.id} for one in code):
        raise Conflict(f"the {words} is registered in code and can only be changed there")
    for one in await visible_live(tenant, db, code):
        if one.family is family and name in {one.name, one.id}:
            reason = "and can only be changed there; the live source declares its level and selection"
            raise Conflict(f"the {words} belongs to the live source {one.source_name}, {reason}")
    if family is Family.TOOL and name in RESERVED and await sources.queried(tenant, db):
        raise Conflict("the tool is built in; it exists while a source is exposed to the query tools")


def _tag(one: Any) -> str:
    tag: str = one.status.tag
    return tag or tag_of_kind(one)


def _collection(kind: Kind[Own], stored: Rows[Own]) -> PrimitiveCollection[Own]:
    return PrimitiveCollection(
        kind=kind,
        rows=stored,
        prepare=_prepare,
        check=_check,
        written=_written,
        describe=_describe,
        compute=_read_statuses,
        refuse_foreign=partial(_refuse_foreign, family=kind.of.family),
        tag=_tag,
        is_heavy=True,
    )


TOOLS = _collection(TOOL, rows.TOOLS)
RESOURCES = _collection(RESOURCE, rows.RESOURCES)
TEMPLATES = _collection(TEMPLATE, rows.TEMPLATES)
PROMPTS = _collection(PROMPT, rows.PROMPTS)
COLLECTIONS: dict[Family, PrimitiveCollection[Any]] = {
    Family.TOOL: TOOLS,
    Family.RESOURCE: RESOURCES,
    Family.TEMPLATE: TEMPLATES,
    Family.PROMPT: PROMPTS,
}
