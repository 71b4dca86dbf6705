"""Differences between the tools of an import and those of the previous version, and the refusal of removals."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from gateway.domain.identifiers import TenantId
from gateway.domain.refusals import RemovalsRefused
from gateway.domain.sources import ImportChanges, OperationChange, StoredOperation
from gateway.domain.tools import Tool
from gateway.errors import Fault
from gateway.store.audit import entries
from gateway.store.engine import Db

_RECENT = timedelta(days=7)
_MOST_NAMED = 20


def compare(before: Iterable[Tool], after: Iterable[StoredOperation]) -> ImportChanges:
    """Added, removed, renamed and changed operations, matched by identity. A renamed one is not compared further."""
    known = {tool.identity: tool for tool in before}
    added: list[OperationChange] = []
    renamed: list[OperationChange] = []
    changed: list[OperationChange] = []
    for made in after:
        tool = known.pop(made.identity, None)
        if tool is None:
            added.append(OperationChange(identity=made.identity, tool=made.tool))
        elif tool.name != made.tool:
            renamed.append(OperationChange(identity=made.identity, tool=made.tool, was=tool.name))
        elif _differs(tool, made):
            changed.append(OperationChange(identity=made.identity, tool=made.tool))
    removed = [OperationChange(identity=tool.identity, tool=tool.name) for tool in known.values()]
    return ImportChanges(added=tuple(added), removed=tuple(removed), renamed=tuple(renamed), changed=tuple(changed))


async def with_recent_calls(tenant: TenantId, db: Db, changes: ImportChanges) -> ImportChanges:
    """The changes with each removed tool's number of calls in the last seven days, among the last 100,000 entries."""
    if not changes.removed:
        return changes
    names = [removed.tool for removed in changes.removed]
    calls = await entries.count_calls(tenant, db, names, since=datetime.now(UTC) - _RECENT)
    counted = tuple(replace(removed, recent_calls=calls.get(removed.tool, 0)) for removed in changes.removed)
    return replace(changes, removed=counted)


def refuse_removals(removed: Sequence[OperationChange]) -> None:
    """Refuse an update that would remove tools; the faults name the 20 most called of these tools.

    Raises:
        RemovalsRefused: there are removed tools.
    """
    if not removed:
        return
    called = sum(bool(one.recent_calls) for one in removed)
    tools = "1 tool" if len(removed) == 1 else f"{len(removed)} tools"
    dearest = sorted(removed, key=lambda one: -(one.recent_calls or 0))[:_MOST_NAMED]
    raise RemovalsRefused(
        f"the update would remove {tools}, {called} of them called in the last {_RECENT.days} days; nothing was stored",
        faults=[Fault(pointer="/allow_removals", reason=_describe(one)) for one in dearest],
    )


def _differs(tool: Tool, made: StoredOperation) -> bool:
    was = (tool.definition, tool.plan, tool.safety, tool.tags)
    return was != (made.definition, made.plan, made.safety, made.tags)


def _describe(removed: OperationChange) -> str:
    calls = "1 call" if removed.recent_calls == 1 else f"{removed.recent_calls} calls"
    return f"{removed.tool} ({removed.identity}) would be removed; {calls} in the last {_RECENT.days} days"
