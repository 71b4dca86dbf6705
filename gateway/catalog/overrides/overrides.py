"""Overrides of imported tools: a tenant's changes to tools, stored separately from the document.

An override names its operation by identity. The override applies while the source's active document has that
operation, and is removed with the source.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime

from gateway.catalog.calls.approvals import supersede_approvals
from gateway.catalog.ceilings import policy_in_force
from gateway.catalog.etags import Expected, check_tag
from gateway.catalog.overrides.validation import validate_override
from gateway.catalog.primitives.constraints import refuse_tool_name
from gateway.catalog.primitives.queries import Listed, show_operation
from gateway.catalog.sources.sources import find_source
from gateway.catalog.transaction import Author, CatalogChange, CatalogContext, change
from gateway.domain.fairness.thread_kinds import CATALOG_CHANGES
from gateway.domain.fairness.threads import run_in_thread
from gateway.domain.identifiers import OverrideId, TenantId, new_override_id
from gateway.domain.overrides import NOTHING, LoadedOperation, Override, OverrideFields
from gateway.errors import Conflict, LimitExceeded, NotFound
from gateway.store import operations, overrides, tool_aliases
from gateway.store.engine import Db
from gateway.store.kinds.primitives import TOOLS

_UPDATE, _RESET = "tool.override", "tool.reset"
_STATE_FIELDS = frozenset(("hidden", "enabled", "safety"))
"""Fields that do not redefine a tool, so approvals of its calls stay open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredOverride:
    """An override and the effective name of its tool; `tool` is None while the source lacks the operation."""

    override: Override
    tool: str | None

    @property
    def tag(self) -> str:
        """The version of the override as an opaque tag."""
        return f"{self.override.id}.{self.override.version}"


async def is_imported(tenant: TenantId, catalog: CatalogContext, name: str) -> bool:
    """True if an imported tool has this name or id, and none of the tenant's own tools has it."""
    async with catalog.store.reading(tenant) as db:
        return await _find(tenant, db, name) is not None


async def override_tool(
    tenant: TenantId,
    catalog: CatalogContext,
    name: str,
    revise: Callable[[OverrideFields], OverrideFields],
    *,
    by: Author,
    expected: Expected = None,
) -> Listed:
    """Replace the override of an imported tool. After a rename, the old name can be called for 30 days.

    Raises:
        NotFound: the tenant has no imported tool of this name or id.
        PreconditionFailed: the current version matches no expected tag.
        ToolValidationError: the override does not fit the tool; the faults list the first 20 invalid members.
        NameTaken: another tool or override has the requested name.
        LimitExceeded: the number of overrides has reached the tenant's limit on primitives.
        Conflict: the tool was changed at the same time; nothing was stored.
    """
    async with catalog.store.reading(tenant) as db:
        loaded = await _find_imported(tenant, db, name)
    check_tag(show_operation(loaded).tag, expected)
    changes = revise(_current_fields(loaded))
    changes = await run_in_thread(CATALOG_CHANGES, tenant, validate_override, changes, loaded.tool.definition)
    entry = CatalogChange(action=_UPDATE, target=loaded.tool.name)
    async with change(tenant, catalog, entry, by=by) as db:
        current = await _find(tenant, db, loaded.tool.operation)
        if current is None or current != loaded:
            raise Conflict("the tool was changed at the same time; read it again")
        entry.detail = _detail(current, changes)
        entry.before, entry.after = _current_fields(current), changes
        await _write(tenant, catalog, db, current, changes)
        listed = show_operation(await _find_imported(tenant, db, loaded.tool.operation))
        overridden_at = datetime.now(UTC)
    await _supersede(tenant, catalog, loaded, changes, before=overridden_at)
    return listed


async def reset_tool(
    tenant: TenantId, catalog: CatalogContext, name: str, *, by: Author, expected: Expected = None
) -> None:
    """Remove the override of an imported tool, which then has the values of its document again.

    Raises:
        NotFound: there is no such imported tool, or it has no override.
        PreconditionFailed: the current version matches no expected tag.
        NameTaken: another tool now has the name from the document.
    """
    entry = CatalogChange(action=_RESET, target=name)
    async with change(tenant, catalog, entry, by=by) as db:
        current = await _find_imported(tenant, db, name)
        check_tag(show_operation(current).tag, expected)
        if current.override is None:
            raise NotFound("the tool has no override")
        entry.target, entry.detail = current.tool.name, _detail(current, NOTHING)
        entry.before, entry.after = _current_fields(current), NOTHING
        await _write(tenant, catalog, db, current, NOTHING)
        reset_at = datetime.now(UTC)
    await _supersede(tenant, catalog, current, NOTHING, before=reset_at)


async def page_overrides(
    tenant: TenantId, catalog: CatalogContext, source: str, *, after: str | None, limit: int
) -> Sequence[StoredOverride]:
    """One page of a source's overrides sorted by operation identity, those of missing operations included.

    Raises:
        NotFound: the tenant has no such source.
    """
    async with catalog.store.reading(tenant) as db:
        found = await find_source(tenant, db, source)
        page = await overrides.page(tenant, db, found.id, after=after, limit=limit)
        tools = await operations.names_of(tenant, db, found.id)
    return [StoredOverride(override=one, tool=tools.get(one.identity)) for one in page]


async def get_override(tenant: TenantId, catalog: CatalogContext, source: str, override: str) -> StoredOverride:
    """One override of a source.

    Raises:
        NotFound: the tenant has no such source, or the source has no override with this id.
    """
    async with catalog.store.reading(tenant) as db:
        return await _get_stored(tenant, db, source, override)


async def remove_override(
    tenant: TenantId, catalog: CatalogContext, source: str, override: str, *, by: Author, expected: Expected = None
) -> None:
    """Remove an override of a source, even if the document no longer contains its operation.

    Raises:
        NotFound: the tenant has no such source, or the source has no override with this id.
        PreconditionFailed: the current version matches no expected tag.
        NameTaken: another tool now has the name from the document.
    """
    entry = CatalogChange(action=_RESET, target=override)
    async with change(tenant, catalog, entry, by=by) as db:
        stored = await _get_stored(tenant, db, source, override)
        check_tag(stored.tag, expected)
        if stored.tool is None:
            entry.target, entry.detail = stored.override.identity, {"source": source}
            entry.before, entry.after = stored.override.changes, NOTHING
            await overrides.remove(tenant, db, stored.override.id)
            return
        current = await _find_imported(tenant, db, stored.tool)
        entry.target, entry.detail = current.tool.name, _detail(current, NOTHING)
        entry.before, entry.after = _current_fields(current), NOTHING
        await _write(tenant, catalog, db, current, NOTHING)
        removed_at = datetime.now(UTC)
    await _supersede(tenant, catalog, current, NOTHING, before=removed_at)


async def _supersede(
    tenant: TenantId, catalog: CatalogContext, current: LoadedOperation, changes: OverrideFields, *, before: datetime
) -> None:
    """End the open approvals of a tool that a stored override redefines."""
    if not _STATE_FIELDS.issuperset(_changed_fields(current, changes)):
        await supersede_approvals(tenant, catalog, [current.tool.name], before=before)


async def _write(
    tenant: TenantId, catalog: CatalogContext, db: Db, current: LoadedOperation, changes: OverrideFields
) -> None:
    """Store or delete the override of an operation, and rename its tool accordingly."""
    tool, now = current.tool, datetime.now(UTC)
    name = changes.name or operations.document_name(tool.definition)
    if name != tool.name:
        await refuse_tool_name(tenant, catalog, db, name)  # guard: renamed-name-free
        await operations.rename(tenant, db, tool.operation, name)
        await tool_aliases.add(tenant, db, tool.source, {tool.identity: tool.name})
    if changes.is_empty:
        if current.override is not None:
            await overrides.remove(tenant, db, current.override.id)
    elif current.override is not None:
        await overrides.save(tenant, db, replace(current.override, changes=changes, updated_at=now))
    else:
        await _refuse_too_many(tenant, catalog, db)
        new_override = Override(
            id=new_override_id(),
            source=tool.source,
            identity=tool.identity,
            changes=changes,
            created_at=now,
            updated_at=now,
        )
        await overrides.insert(tenant, db, new_override)


async def _refuse_too_many(tenant: TenantId, catalog: CatalogContext, db: Db) -> None:
    allowed = (await policy_in_force(tenant, db, catalog.options.ceilings)).limits.primitives
    if await overrides.count(tenant, db) >= allowed:
        raise LimitExceeded(f"the tenant has {allowed} overrides (the limit on primitives); delete unused ones")


async def _find(tenant: TenantId, db: Db, name: str) -> LoadedOperation | None:
    """The operation of this name or id; None if one of the tenant's own tools has the name, because it takes
    precedence.
    """
    if await TOOLS.get(tenant, db, name) is not None:
        return None
    return await operations.find_named(tenant, db, name)


async def _find_imported(tenant: TenantId, db: Db, name: str) -> LoadedOperation:
    found = await _find(tenant, db, name)
    if found is None:
        raise NotFound("no such imported tool")
    return found


async def _get_stored(tenant: TenantId, db: Db, source: str, override: str) -> StoredOverride:
    found = await find_source(tenant, db, source)
    stored = await overrides.get(tenant, db, found.id, OverrideId(override))
    if stored is None:
        raise NotFound("no such override")
    tools = await operations.names_of(tenant, db, found.id)
    return StoredOverride(override=stored, tool=tools.get(stored.identity))


def _current_fields(operation: LoadedOperation) -> OverrideFields:
    return NOTHING if operation.override is None else operation.override.changes


def _changed_fields(current: LoadedOperation, changes: OverrideFields) -> list[str]:
    before = _current_fields(current)
    return [one.name for one in fields(OverrideFields) if getattr(before, one.name) != getattr(changes, one.name)]


def _detail(current: LoadedOperation, changes: OverrideFields) -> dict[str, object]:
    """Detail of the audit entry: the safety level before and after, the names of pinned arguments, and a new name."""
    before, tool = _current_fields(current), current.tool
    detail: dict[str, object] = {
        "source": tool.source_name,
        "operation": tool.identity,
        "changed": _changed_fields(current, changes),
        "safety": [(before.safety or tool.safety).value, (changes.safety or tool.safety).value],
        "pinned": sorted(changes.pinned or {}),
    }
    name = changes.name or operations.document_name(tool.definition)
    return detail if name == tool.name else detail | {"name": name}
