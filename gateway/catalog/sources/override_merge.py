"""Merge of a source's overrides into an import of its document: tool names, reports, and aliases for old names."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gateway.catalog.overrides.validation import pinned_faults
from gateway.catalog.sources.drafts import PreparedImport
from gateway.catalog.sources.limits import MAX_WARNINGS
from gateway.domain.fairness.thread_kinds import CATALOG_CHANGES
from gateway.domain.fairness.threads import run_in_thread
from gateway.domain.identifiers import SourceId, TenantId
from gateway.domain.overrides import Override, OverrideReport
from gateway.domain.sources import Source
from gateway.domain.tools import Tool
from gateway.store import operations, tool_aliases
from gateway.store.engine import Db
from gateway.store.kinds.overrides import OVERRIDES


async def known_names(tenant: TenantId, db: Db, source: SourceId, *, keeps_prefix: bool) -> Mapping[str, str]:
    """Tool names that the compiler treats as taken: names that operations keep, by identity, and names of overrides.

    An override's name is stored under a key that is not an identity. So no new tool gets the name, even while the
    document lacks the override's operation.
    """
    operation_names: Mapping[str, str] = await operations.known_names(tenant, db, source) if keeps_prefix else {}
    found = await OVERRIDES.of_source(tenant, db, source)
    override_names = {f" {one.id}": one.given_name for one in found.values() if one.given_name is not None}
    return {**operation_names, **override_names}


async def names_of_overrides(tenant: TenantId, db: Db, *, exclude: str) -> Mapping[str, str]:
    """The owner of each name that an override assigns, except overrides of the source `exclude`."""
    found = await OVERRIDES.given_names(tenant, db)
    return {name: f"source:{source}" for name, source in found.items() if source != exclude}


async def reapply(tenant: TenantId, db: Db, ready: PreparedImport) -> PreparedImport:
    """The import with the tool names of the overrides, and with a report on each override."""
    found = await OVERRIDES.of_source(tenant, db, ready.source)
    return await run_in_thread(CATALOG_CHANGES, tenant, _reapply, ready, found) if found else ready


async def store_aliases(
    tenant: TenantId, db: Db, source: Source, *, before: Sequence[Tool], after: PreparedImport
) -> None:
    """Store aliases for tools that an import renames, so that their old names can still be called."""
    now = {operation.identity: operation.tool for operation in after.operations}
    old = {tool.identity: tool.name for tool in before if now.get(tool.identity, tool.name) != tool.name}
    await tool_aliases.add(tenant, db, source.id, old)


def _reapply(ready: PreparedImport, found: Mapping[str, Override]) -> PreparedImport:
    names = {identity: one.given_name for identity, one in found.items() if one.given_name is not None}
    renamed = [replace(one, tool=names.get(one.identity, one.tool)) for one in ready.operations]
    new_names = {before.tool: after.tool for before, after in zip(ready.compilation.operations, renamed, strict=True)}
    compiled = tuple(replace(one, tool=new_names[one.tool]) for one in ready.compilation.operations)
    report = ready.compilation.report
    definitions = {one.identity: (one.tool, one.definition) for one in renamed}
    reports = [_to_report(one, definitions.get(identity)) for identity, one in found.items()]
    report = replace(
        report,
        operations=tuple(replace(one, tool=new_names.get(one.tool or "", one.tool)) for one in report.operations),
        warnings=(*report.warnings, *_warnings(reports)),
        dearest=tuple(replace(one, tool=new_names.get(one.tool, one.tool)) for one in report.dearest),
        overrides=tuple(reports),
    )
    return replace(
        ready, operations=renamed, compilation=replace(ready.compilation, operations=compiled, report=report)
    )


def _to_report(override: Override, defined: tuple[str, bytes] | None) -> OverrideReport:
    identity = override.operation
    if defined is None:
        reason = "the document no longer has the operation, or the import excludes it"
        return OverrideReport(identity=identity, applies=False, reasons=(reason,))
    tool, definition = defined
    faults = pinned_faults(definition, override.pinned or {})
    reasons = tuple(f"{fault.pointer}: {fault.reason}" for fault in faults)
    return OverrideReport(identity=identity, applies=True, tool=tool, reasons=reasons)


def _warnings(reports: Sequence[OverrideReport]) -> Sequence[str]:
    warnings = [f"override for {one.identity}: {reason}" for one in reports for reason in one.reasons]
    omitted = len(warnings) - MAX_WARNINGS
    return warnings if omitted <= 0 else [*warnings[:MAX_WARNINGS], f"and {omitted} more about overrides"]
