"""Overrides of imported tools, declared by tenants: their operations, names, levels and approvals.

An override names its operation by source and identity. It applies while the source's active document has that
operation, and is removed with the source.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

from gateway.catalog.calls.approvals import supersede_approvals
from gateway.catalog.ceilings import policy_in_force
from gateway.catalog.etags import Expected, check_tag
from gateway.catalog.kinds.engines.collection import Collection
from gateway.catalog.kinds.engines.prepared import is_equal
from gateway.catalog.kinds.engines.special_functions import Revise, tag_of_kind
from gateway.catalog.overrides.validation import normalise, validate_override
from gateway.catalog.primitives.constraints import refuse_tool_name
from gateway.catalog.primitives.queries import show_operation
from gateway.catalog.sources.sources import find_source
from gateway.catalog.transaction import Author, CatalogContext, OpenChanges
from gateway.domain.fairness.thread_kinds import CATALOG_CHANGES
from gateway.domain.fairness.threads import run_in_thread
from gateway.domain.identifiers import TenantId
from gateway.domain.overrides import CHANGES, LoadedOperation, Override, OverrideStatus
from gateway.domain.tools import Tool
from gateway.errors import Conflict, Fault, InvalidBody, LimitExceeded, NotFound, ReferenceMissing
from gateway.kinds.sources import OVERRIDE
from gateway.store import operations, tool_aliases
from gateway.store.engine import Db
from gateway.store.kinds.overrides import OVERRIDES as ROWS
from gateway.store.kinds.primitives import TOOLS

_CHANGED = "the tool was changed at the same time; read it again"
_STATE_MEMBERS = frozenset(("hidden", "enabled", "safety"))
"""Members that do not redefine a tool, so approvals of its calls stay open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OverrideCollection(Collection[Override]):
    """The overrides of a tenant. A change of an imported tool without an override creates the override."""

    async def change(
        self,
        tenant: TenantId,
        catalog: CatalogContext,
        name: str,
        revise: Revise[Override],
        *,
        by: Author,
        expected: Expected = None,
    ) -> Override:
        """Change the override of this name or id, or create that of the imported tool; see `Collection.change`."""
        async with catalog.store.reading(tenant) as db:
            stored = await self.rows.get(tenant, db, name)
            loaded = None if stored is not None else await _find_imported(tenant, db, name)
        if loaded is None:
            return await Collection[Override].change(self, tenant, catalog, name, revise, by=by, expected=expected)
        start = _empty(loaded)
        done, _, _ = await self.set(
            tenant, catalog, start.name, lambda now: revise(now or start), by=by, expected=expected
        )
        return done


async def is_imported(tenant: TenantId, catalog: CatalogContext, name: str) -> bool:
    """True if an imported tool has this name or id, and none of the tenant's own tools has it."""
    async with catalog.store.reading(tenant) as db:
        return await _find(tenant, db, name) is not None


async def override_tool(
    tenant: TenantId,
    catalog: CatalogContext,
    name: str,
    revise: Revise[Override],
    *,
    by: Author,
    expected: Expected = None,
) -> None:
    """Change the override of an imported tool; one that changes nothing any more is removed. `expected` are tags of
    the tool. `revise` gives an empty name for that of the document.

    Raises:
        NotFound: the tenant has no imported tool of this name or id.
        PreconditionFailed: the current version of the tool matches no expected tag.
        GatewayError: as for `Collection.set`.
    """
    async with catalog.store.reading(tenant) as db:
        loaded = await _find_imported(tenant, db, name)
    check_tag(show_operation(loaded).tag, expected)
    start = loaded.override or _empty(loaded)
    in_document = operations.document_name(loaded.tool.definition)

    def finish(current: Override | None) -> Override:
        if current != loaded.override:
            raise Conflict(_CHANGED)
        revised = revise(start)
        return replace(normalise(revised), name=revised.name or in_document, document=loaded.tool)

    wanted = finish(loaded.override)
    if wanted.name == in_document and all(getattr(wanted, each) is None for each in CHANGES):
        if loaded.override is not None:
            await reset_tool(tenant, catalog, name, by=by, expected=expected)
    elif loaded.override is None:
        await OVERRIDES.set(tenant, catalog, start.name, finish, by=by)
    else:
        await OVERRIDES.change(tenant, catalog, start.id, finish, by=by)


async def reset_tool(
    tenant: TenantId, catalog: CatalogContext, name: str, *, by: Author, expected: Expected = None
) -> None:
    """Remove the override of an imported tool, which then has the values of its document again. `expected` are tags
    of the tool.

    Raises:
        NotFound: there is no such imported tool, or it has no override.
        PreconditionFailed: the current version of the tool matches no expected tag.
        NameTaken: another tool now has the name from the document.
    """
    async with catalog.store.reading(tenant) as db:
        loaded = await _find_imported(tenant, db, name)
    check_tag(show_operation(loaded).tag, expected)
    if loaded.override is None:
        raise NotFound("the tool has no override")
    own = None if expected is None else frozenset({tag_of_kind(loaded.override)})
    await OVERRIDES.remove(tenant, catalog, loaded.override.id, by=by, expected=own)


async def page_of_source(
    tenant: TenantId, catalog: CatalogContext, source: str, *, after: str | None, limit: int
) -> Sequence[Override]:
    """One page of a source's overrides sorted by operation, those of missing operations included.

    Raises:
        NotFound: the tenant has no such source.
    """
    async with catalog.store.reading(tenant) as db:
        found = await find_source(tenant, db, source)
        return await ROWS.page_of_source(tenant, db, found.id, after=after, limit=limit)


async def _prepare(tenant: TenantId, catalog: CatalogContext, wanted: Override, by: Author) -> Override | None:
    """Validate the changes against the tool; without one yet, `_complete` does, after an import of the transaction."""
    del by
    async with catalog.store.reading(tenant) as db:
        loaded = await _load(tenant, db, wanted)
    if loaded is None:
        return None
    if wanted.document is not None and wanted.document != loaded.tool:
        raise Conflict(_CHANGED)
    return await _validated(tenant, wanted, loaded.tool)


async def _complete(opened: OpenChanges, current: Override | None, wanted: Override) -> Override:
    """Find the operation, whose tool may have changed since the validation, and the name that the override gives."""
    loaded = await _load(opened.tenant, opened.db, wanted)
    if loaded is None and current is not None and current.name == wanted.name and is_equal(OVERRIDE, current, wanted):
        return wanted  # it waits for its operation
    if current is None and loaded is not None and loaded.override is not None:
        raise Conflict(f"the operation has the override {loaded.override.name} already; rename that one")
    tool = _existing(wanted, loaded).tool
    if wanted.document != tool:  # guard: override-of-validated-tool
        wanted = await _validated(opened.tenant, wanted, tool)
    if current is not None and current.name == wanted.name:
        given_name = current.given_name
    else:
        given_name = None if wanted.name == operations.document_name(tool.definition) else wanted.name
    return replace(wanted, source_id=tool.source, given_name=given_name, tool=tool.name, document=tool)


async def _validated(tenant: TenantId, wanted: Override, tool: Tool) -> Override:
    valid = await run_in_thread(CATALOG_CHANGES, tenant, validate_override, wanted, tool.definition)
    return replace(valid, document=tool)


async def _check(opened: OpenChanges, current: Override | None, wanted: Override) -> None:
    """Refuse an override that changes nothing, too many, and a taken name."""
    tenant, catalog, db = opened.tenant, opened.catalog, opened.db
    if wanted.is_empty:
        reason = "the override changes nothing; give a change, or delete it"
        raise InvalidBody(reason, faults=[Fault(pointer="", reason=reason)])
    if current is None:
        allowed = (await policy_in_force(tenant, db, catalog.options.ceilings)).limits.primitives
        if await ROWS.count(tenant, db) >= allowed:
            raise LimitExceeded(f"the tenant has {allowed} overrides (the limit on primitives); delete unused ones")
    if wanted.document is not None and wanted.name != wanted.document.name:
        await refuse_tool_name(tenant, catalog, db, wanted.name)  # guard: renamed-name-free


async def _removing(opened: OpenChanges, current: Override) -> None:
    """Give the tool the name from its document again."""
    loaded = await _load(opened.tenant, opened.db, current)
    name = "" if loaded is None else operations.document_name(loaded.tool.definition)
    if loaded is not None and name != loaded.tool.name:
        await refuse_tool_name(opened.tenant, opened.catalog, opened.db, name)
        await _rename(opened, loaded.tool, name)


async def _written(opened: OpenChanges, before: Override | None, after: Override | None) -> None:
    """Rename the tool; its old name can be called for 30 days. End the open approvals of a redefined tool."""
    tool = None if after is None else after.document
    if tool is not None and after is not None and after.name != tool.name:
        await _rename(opened, tool, after.name)
    if not _STATE_MEMBERS.issuperset(_changed(before, after)):
        called = before.name if before is not None else "" if tool is None else tool.name
        end = partial(supersede_approvals, opened.tenant, opened.catalog, [called], before=datetime.now(UTC))
        opened.later.append(end)


async def _describe(opened: OpenChanges, before: Override | None, after: Override | None) -> Mapping[str, object]:
    """The operation, the changed members, the level before and after, the names of pinned arguments, and a new name."""
    [one, *_] = [side for side in (after, before) if side is not None]
    place = {"source": one.source, "operation": one.operation}
    loaded = await _load(opened.tenant, opened.db, one)
    if loaded is None:
        return place
    levels = [(None if side is None else side.safety) or loaded.tool.safety for side in (before, after)]
    return {
        **place,
        "changed": _changed(before, after),
        "safety": [level.value for level in levels],
        "pinned": sorted((after.pinned if after is not None else None) or {}),
        **({"name": after.name} if after is not None and after.name != loaded.tool.name else {}),
    }


async def _read_statuses(_: TenantId, __: CatalogContext, found: Sequence[Override]) -> Sequence[OverrideStatus]:
    return [OverrideStatus(tool=one.tool) for one in found]


async def _rename(opened: OpenChanges, tool: Tool, name: str) -> None:
    await operations.rename(opened.tenant, opened.db, tool.operation, name)
    await tool_aliases.add(opened.tenant, opened.db, tool.source, {tool.identity: tool.name})


def _changed(before: Override | None, after: Override | None) -> list[str]:
    """The names of the changed members, as an override without changes has them on a missing side."""
    sides = [[None if side is None else getattr(side, name) for name in _COMPARED] for side in (before, after)]
    differing = [name for name, old, new in zip(_COMPARED, *sides, strict=True) if old != new]
    return ["name" if name == "given_name" else name for name in differing]


def _empty(loaded: LoadedOperation) -> Override:
    """A new override of an imported tool, without changes."""
    return OVERRIDE.make(loaded.tool.name, {"source": loaded.tool.source_name, "operation": loaded.tool.identity})


async def _load(tenant: TenantId, db: Db, one: Override) -> LoadedOperation | None:
    """The operation of an override."""
    return await operations.find_identity(tenant, db, one.source, one.operation)


def _existing(one: Override, loaded: LoadedOperation | None) -> LoadedOperation:
    if loaded is None:
        reason = f"the source {one.source} has no operation {one.operation}"
        raise ReferenceMissing(f"/operation: {reason}", faults=[Fault(pointer="/operation", reason=reason)])
    return loaded


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


_COMPARED = ("given_name", *CHANGES)
OVERRIDES = OverrideCollection(
    kind=OVERRIDE,
    rows=ROWS,
    prepare=_prepare,
    complete=_complete,
    check=_check,
    removing=_removing,
    written=_written,
    describe=_describe,
    compute=_read_statuses,
    is_heavy=True,
)
