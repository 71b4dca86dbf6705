"""Comparison of an import with the active version: the worker's input, the effective names, and the check of
removals.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from gateway.catalog.sources.limits import MAX_REMOVED_SHOWN
from gateway.catalog.sources.reports import decode_report
from gateway.domain.fairness.thread_kinds import CATALOG_CHANGES
from gateway.domain.fairness.threads import run_in_thread
from gateway.domain.identifiers import TenantId
from gateway.domain.overrides import LoadedOperation
from gateway.domain.refusals import RemovalsRefused, SourceShrunk
from gateway.domain.sources import Source, StoredOperation
from gateway.domain.text_search.look_alikes import find_alike
from gateway.domain.updates.source_changes import (
    ComparedTool,
    ComparedVersion,
    ImportChanges,
    OperationChange,
    look_alike,
)
from gateway.errors import Fault, InvalidDocument
from gateway.store import operations
from gateway.store.audit import entries
from gateway.store.engine import Db
from gateway.store.sources import versions

_RECENT = timedelta(days=7)


async def read_version(tenant: TenantId, db: Db, source: Source) -> ComparedVersion:
    """The active version of a source as a worker compares it, with the names that the document gives."""
    report = await versions.report(tenant, db, source.id, source.active_version)
    outline = await versions.outline(tenant, db, source.id, source.active_version)
    schemas = await operations.input_schemas(tenant, db, source.id)
    return ComparedVersion(
        tools=tuple(_compared(one, schemas) for one in await operations.of_source(tenant, db, source.id)),
        outline=outline or b"",
        findings=decode_report(report).findings if report else (),
    )


def _compared(loaded: LoadedOperation, schemas: Mapping[str, bytes]) -> ComparedTool:
    tool, override = loaded.tool, loaded.override
    is_renamed = override is not None and override.given_name is not None
    return ComparedTool(
        identity=tool.identity,
        operation_id=loaded.operation_id,
        name=operations.document_name(tool.definition) if is_renamed else tool.name,
        definition=tool.definition,
        plan=tool.plan,
        safety=tool.safety,
        tags=tool.tags,
        input_schema=schemas.get(tool.identity),
    )


def with_effective_names(
    changes: ImportChanges, before: Iterable[LoadedOperation], after: Iterable[StoredOperation]
) -> ImportChanges:
    """The changes with the effective names of tools under their overrides.

    A tool that keeps its name is not renamed.
    """
    old = {one.tool.identity: one.tool.name for one in before}
    new = {one.identity: one.tool for one in after}
    compared = [_named(one, old, new) for one in (*changes.renamed, *changes.changed)]
    return replace(
        changes,
        added=tuple(_named(one, old, new) for one in changes.added),
        removed=tuple(_named(one, old, new) for one in changes.removed),
        renamed=tuple(one for one in compared if one.was is not None),
        changed=tuple(one for one in compared if one.was is None and one.differences),
    )


def _named(change: OperationChange, old: Mapping[str, str], new: Mapping[str, str]) -> OperationChange:
    was, tool = old.get(change.identity), new.get(change.identity)
    if was is None or tool is None:
        return replace(change, tool=tool or was or change.tool)
    return replace(change, tool=tool, was=was if was != tool else None)


def names_of_redefined(before: Iterable[LoadedOperation], after: Iterable[StoredOperation]) -> Sequence[str]:
    """The names of the tools that an import redefines, renames or removes."""
    kept = {one.identity: (one.tool, one.definition, one.plan) for one in after}
    tools = [one.tool for one in before]
    return [tool.name for tool in tools if kept.get(tool.identity) != (tool.name, tool.definition, tool.plan)]


async def with_recent_calls(tenant: TenantId, db: Db, changes: ImportChanges) -> ImportChanges:
    """The changes with each removed tool's number of calls in the last seven days, among the last 100,000 entries."""
    if not changes.removed:
        return changes
    names = [removed.tool for removed in changes.removed]
    calls = await entries.count_calls(tenant, db, names, since=datetime.now(UTC) - _RECENT)
    with_calls = tuple(replace(removed, recent_calls=calls.get(removed.tool, 0)) for removed in changes.removed)
    return replace(changes, removed=with_calls)


async def with_similar_names(
    tenant: TenantId, db: Db, changes: ImportChanges, before: Iterable[LoadedOperation]
) -> ImportChanges:
    """The changes with a finding for each new name that resembles the name of another tool of the tenant."""
    new = {one.tool for one in (*changes.added, *changes.renamed)}
    if not new:
        return changes
    own = {one.tool.name for one in before}
    others = (await operations.names(tenant, db)).keys() - own - new
    alike = await run_in_thread(CATALOG_CHANGES, tenant, _find_similar, new, others)
    found = (look_alike(tool, other) for tool, other in alike)
    known = changes.findings  # a proposal has been searched before
    return replace(changes, findings=(*known, *(one for one in found if one not in known)))


def _find_similar(names: Collection[str], others: Collection[str]) -> Sequence[tuple[str, str]]:
    """New names that resemble names of other tools; the worker compares the new names with each other."""
    return [pair for pair in find_alike(sorted(names), sorted(others)) if pair[1] in others]


def refuse_shrinking(before: int, after: int, *, allow: bool) -> None:
    """Refuse a document without tools, and one with less than half of the tools of the active version.

    Raises:
        InvalidDocument: no operation of the document becomes a tool.
        SourceShrunk: less than half of the tools would remain, and `allow` is False.
    """
    if before and not after:
        raise InvalidDocument("No operation of the document becomes a tool; the active version has some.")
    if 2 * after < before and not allow:  # guard: source-shrunk
        raise SourceShrunk(
            f"the document has {after} tools and the active version {before}; send `allow_removals` to propose it"
        )


def refuse_removals(removed: Sequence[OperationChange]) -> None:
    """Refuse an update that would remove tools; the faults name the 20 most called of these tools.

    Raises:
        RemovalsRefused: the update would remove tools.
    """
    if not removed:
        return
    called = sum(bool(one.recent_calls) for one in removed)
    tools = "1 tool" if len(removed) == 1 else f"{len(removed)} tools"
    dearest = sorted(removed, key=lambda one: -(one.recent_calls or 0))[:MAX_REMOVED_SHOWN]
    raise RemovalsRefused(
        f"the update would remove {tools}, {called} of them called in the last {_RECENT.days} days; nothing was stored",
        faults=[Fault(pointer="/allow_removals", reason=_describe(one)) for one in dearest],
    )


def _describe(removed: OperationChange) -> str:
    calls = "1 call" if removed.recent_calls == 1 else f"{removed.recent_calls} calls"
    return f"{removed.tool} ({removed.identity}) would be removed; {calls} in the last {_RECENT.days} days"
