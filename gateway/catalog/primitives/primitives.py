"""A tenant's own tools, resources, resource templates and prompts: creation, dry run, change, removal."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from gateway.catalog.calls.approvals import supersede_approvals
from gateway.catalog.etags import Expected, check_version
from gateway.catalog.live.visible_primitives import visible_live
from gateway.catalog.primitives.constraints import check_fit, code_of
from gateway.catalog.primitives.queries import Listed
from gateway.catalog.primitives.safety_levels import with_effective_levels
from gateway.catalog.primitives.validation import PreparedPrimitive, PrimitiveDraft, prepare
from gateway.catalog.transaction import Author, CatalogChange, CatalogContext, announce, change
from gateway.domain.events import ResourceUpdated, TemplateChanged
from gateway.domain.fairness.thread_kinds import CATALOG_CHANGES
from gateway.domain.fairness.threads import run_in_thread
from gateway.domain.identifiers import PrimitiveId, TenantId, new_primitive_id
from gateway.domain.json_text import decode_object
from gateway.domain.primitives import Family, Primitive
from gateway.domain.tenancy.policy import Safety
from gateway.domain.tools import PrimitiveOrigin
from gateway.errors import Conflict, NotFound, NotYetSupported
from gateway.openapi.operation.names import RESERVED
from gateway.store import operations, primitives
from gateway.store.engine import Db
from gateway.store.sources import sources

_ACTIONS = {Family.TOOL: "call", Family.RESOURCE: "read", Family.PROMPT: "get"}
"""The action of an approval for each family."""

_PREFIXES = {Family.TOOL: "tol", Family.RESOURCE: "res", Family.TEMPLATE: "tpl", Family.PROMPT: "pro"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Address of a primitive: its family, and its name, URI or id."""

    family: Family
    name: str

    @property
    def words(self) -> str:
        """The family in words, for messages."""
        return self.family.replace("_", " ")


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRun:
    """The result of a dry run: the primitive that the draft describes, and the id of the primitive that it would
    replace.
    """

    listed: Listed
    replaces: PrimitiveId | None


async def create_primitive(
    tenant: TenantId, catalog: CatalogContext, family: Family, draft: PrimitiveDraft, *, by: Author
) -> Listed:
    """Create a primitive that belongs to the tenant.

    Raises:
        DefinitionInvalid, TemplateInvalid: the draft is invalid by itself; the faults point into the body.
        NameTaken, LimitExceeded, ReferenceMissing: the draft does not fit into the catalog.
    """
    prepared = await run_in_thread(CATALOG_CHANGES, tenant, prepare, family, draft)
    entry = CatalogChange(action=f"{family}.create", target=prepared.name)
    async with change(tenant, catalog, entry, by=by) as db:
        await check_fit(tenant, catalog, db, prepared, own=None)
        new_primitive = _compose(prepared, draft)
        await primitives.insert(tenant, db, new_primitive)
        listed, entry.detail = await _with_level_and_detail(tenant, catalog, db, new_primitive)
        entry.after = new_primitive
    await _publish(tenant, catalog, family, [new_primitive.name])
    return listed


async def try_primitive(tenant: TenantId, catalog: CatalogContext, family: Family, draft: PrimitiveDraft) -> DryRun:
    """Compose a draft without storing it, as a replacement of the tenant's own primitive of that name, if any.

    Raises:
        DefinitionInvalid, TemplateInvalid, NameTaken, LimitExceeded, ReferenceMissing: the draft could not be stored.
    """
    prepared = await run_in_thread(CATALOG_CHANGES, tenant, prepare, family, draft)
    async with catalog.store.reading(tenant) as db:
        found = await primitives.get(tenant, db, family, prepared.name)
        own = found if found is not None and found.name == prepared.name else None
        await check_fit(tenant, catalog, db, prepared, own=own)
        composed = await _with_level(tenant, catalog, db, _compose(prepared, draft))
    return DryRun(listed=composed, replaces=None if own is None else own.id)


async def update_primitive(
    tenant: TenantId,
    catalog: CatalogContext,
    address: Address,
    revise: Callable[[PrimitiveDraft], PrimitiveDraft],
    *,
    by: Author,
    expected: Expected = None,
) -> Listed:
    """Replace a primitive with the revised draft; its id does not change, even if its name does.

    If only `enabled` or the declared safety level changes, the handler and its references are not checked again.

    Raises:
        NotFound: the tenant has no primitive of this name or id.
        NotYetSupported: the primitive is imported.
        Conflict: the primitive is built-in, from Python code or from a live source, or was changed concurrently.
        PreconditionFailed: the current version matches no expected tag.
        DefinitionInvalid, TemplateInvalid, NameTaken, ReferenceMissing: as for a new one.
    """
    family = address.family
    async with catalog.store.transaction(tenant) as db:
        loaded = await find_primitive(tenant, catalog, db, address)
        check_version(loaded, expected)
    before = draft_of(loaded)
    draft = revise(before)
    is_same = (draft.definition, draft.handler) == (before.definition, before.handler)
    prepared = None if is_same else await run_in_thread(CATALOG_CHANGES, tenant, prepare, family, draft)
    entry = CatalogChange(action=f"{family}.update", target=loaded.name)
    async with change(tenant, catalog, entry, by=by) as db:
        current = await find_primitive(tenant, catalog, db, replace(address, name=loaded.id))
        if current.version != loaded.version:
            raise Conflict(f"the {address.words} was changed at the same time; read it again")
        if prepared is not None:
            await check_fit(tenant, catalog, db, prepared, own=current)
        revised = _succeed(current, draft, prepared)
        revised_at = datetime.now(UTC)
        await primitives.save(tenant, db, revised)
        later = replace(revised, version=current.version + 1)
        saved, detail = await _with_level_and_detail(tenant, catalog, db, later)
        entry.before, entry.after = current, revised
        entry.detail = detail | ({} if revised.name == current.name else {"name": revised.name})
    if prepared is not None:
        await _supersede(tenant, catalog, loaded, before=revised_at)
    await _publish(tenant, catalog, family, [loaded.name, revised.name])
    return saved


async def remove_primitive(
    tenant: TenantId, catalog: CatalogContext, address: Address, *, by: Author, expected: Expected = None
) -> None:
    """Remove the primitive.

    Raises:
        NotFound: the tenant has no primitive of this name or id.
        Conflict: the primitive is imported, built-in, from Python code or from a live source.
        PreconditionFailed: the current version matches no expected tag.
    """
    entry = CatalogChange(action=f"{address.family}.delete", target=address.name)
    async with change(tenant, catalog, entry, by=by) as db:
        try:
            current = await find_primitive(tenant, catalog, db, address)
        except NotYetSupported as imported:
            raise Conflict("the tool is imported; remove its source or change its document") from imported
        check_version(current, expected)
        entry.target, entry.detail, entry.before = current.name, {"id": current.id}, current
        removed_at = datetime.now(UTC)
        await primitives.remove(tenant, db, current.id)
    await _supersede(tenant, catalog, current, before=removed_at)
    await _publish(tenant, catalog, address.family, [current.name])


async def _supersede(tenant: TenantId, catalog: CatalogContext, redefined: Primitive, *, before: datetime) -> None:
    """End the open approvals of a redefined or removed primitive; those for URIs of a resource template expire."""
    if redefined.family in _ACTIONS:
        action = _ACTIONS[redefined.family]
        await supersede_approvals(tenant, catalog, [redefined.name], before=before, action=action)


async def _publish(tenant: TenantId, catalog: CatalogContext, family: Family, names: Iterable[str]) -> None:
    """Publish the creation, change or removal of these resources or templates; other families need no event.

    A removal is published because a template may then provide the content of the removed URI.
    """
    for name in dict.fromkeys(names):
        if family is Family.RESOURCE:
            await announce(catalog, ResourceUpdated(tenant=tenant, uri=name))
        elif family is Family.TEMPLATE:  # guard: changed-template-notified
            await announce(catalog, TemplateChanged(tenant=tenant, template=name))


async def find_primitive(tenant: TenantId, catalog: CatalogContext, db: Db, address: Address) -> Primitive:
    """The tenant's own primitive with this name or id, read in the caller's transaction.

    Raises:
        NotFound: no origin has such a primitive.
        NotYetSupported: the primitive is imported.
        Conflict: the primitive is built-in, from Python code or from a live source.
    """
    family, name = address.family, address.name
    found = await primitives.get(tenant, db, family, name)
    if found is not None:
        return found
    if family is Family.TOOL and await operations.find_named(tenant, db, name) is not None:
        raise NotYetSupported("cannot replace an imported tool; use PATCH to override its members")
    code = await code_of(tenant, catalog, db)
    if any(one.family is family and name in {one.name, one.id} for one in code):
        raise Conflict(f"the {address.words} is registered in code and can only be changed there")
    for one in await visible_live(tenant, db, code):
        if one.family is family and name in {one.name, one.id}:
            reason = "and can only be changed there; the live source declares its level and selection"
            raise Conflict(f"the {address.words} belongs to the live source {one.source_name}, {reason}")
    if family is Family.TOOL and name in RESERVED and await sources.queried(tenant, db):
        raise Conflict("the tool is built in; it exists while a source is exposed to the query tools")
    raise NotFound(f"no such {address.words}")


def draft_of(primitive: Primitive) -> PrimitiveDraft:
    """The draft of a stored primitive, as the input of a revision."""
    return PrimitiveDraft(
        definition=decode_object(primitive.definition),
        handler=decode_object(primitive.handler),
        safety=primitive.override,
        enabled=primitive.enabled,
    )


async def _with_level(tenant: TenantId, catalog: CatalogContext, db: Db, primitive: Primitive) -> Listed:
    code = await code_of(tenant, catalog, db)
    live = await visible_live(tenant, db, code)
    [effective] = await with_effective_levels(tenant, db, [primitive], [*code, *live])
    is_hiding = any((one.family, one.name) == (primitive.family, primitive.name) for one in code)
    return Listed(item=effective, hides_code=is_hiding)


async def _with_level_and_detail(
    tenant: TenantId, catalog: CatalogContext, db: Db, primitive: Primitive
) -> tuple[Listed, dict[str, object]]:
    listed = await _with_level(tenant, catalog, db, primitive)
    effective = listed.item if isinstance(listed.item, Primitive) else primitive
    return listed, _detail(effective)


def _compose(ready: PreparedPrimitive, draft: PrimitiveDraft) -> Primitive:
    now = datetime.now(UTC)
    return _with(
        Primitive(
            id=new_primitive_id(_PREFIXES[ready.family]),
            family=ready.family,
            name=ready.name,
            definition=ready.definition,
            origin=PrimitiveOrigin.CUSTOM,
            created_at=now,
            updated_at=now,
        ),
        draft,
        ready,
    )


def _succeed(current: Primitive, draft: PrimitiveDraft, ready: PreparedPrimitive | None) -> Primitive:
    return _with(replace(current, updated_at=datetime.now(UTC)), draft, ready)


def _with(primitive: Primitive, draft: PrimitiveDraft, ready: PreparedPrimitive | None) -> Primitive:
    """The primitive with the members of the draft, and with the prepared definition and handler if they changed."""
    if ready is not None:
        primitive = replace(
            primitive,
            name=ready.name,
            definition=ready.definition,
            handler=ready.handler,
            assessed=ready.level,
            safety_reasons=ready.reasons,
            refers=ready.refers,
        )
    level: Safety = draft.safety or primitive.assessed
    return replace(primitive, override=draft.safety, safety=level, enabled=draft.enabled)


def _detail(primitive: Primitive) -> dict[str, object]:
    """Detail of the audit entry, with both levels. The handler is omitted, because it contains strings of the
    tenant.
    """
    override = None if primitive.override is None else primitive.override.value
    detail: dict[str, object] = {
        "id": primitive.id,
        "enabled": primitive.enabled,
        "assessed": primitive.assessed.value,
        "safety": override,
    }
    return detail if primitive.counted is None else {**detail, "counted": primitive.counted.value}
