"""Differences between the tools of an import and those of the previous version."""

from collections.abc import Iterable

from gateway.domain.sources import ImportChanges, OperationChange, StoredOperation
from gateway.domain.tools import Tool


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


def _differs(tool: Tool, made: StoredOperation) -> bool:
    was = (tool.definition, tool.plan, tool.safety, tool.tags)
    return was != (made.definition, made.plan, made.safety, made.tags)
