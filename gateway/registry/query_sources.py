"""The sources of the query tools that one caller sees."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from gateway.catalog.snapshots.snapshot import Snapshot
from gateway.domain.queries import OWN_TOOLS, Queried, QueriedKind, QueriedSource
from gateway.domain.tenancy.selection import Selection
from gateway.domain.tools import PrimitiveOrigin, Tool
from gateway.openapi.query.remote_tools import REMOTE_METHOD
from gateway.openapi.query.tools import SEARCH

_OWN: Final = frozenset({PrimitiveOrigin.CUSTOM, PrimitiveOrigin.CODE})


def find_queried(
    snapshot: Snapshot, listed: Sequence[Tool], selection: Selection | None, *, is_asked: bool
) -> Sequence[Queried]:
    """Return the sources of the query tools, with the operations that the selection contains.

    `listed` are the tools of the caller's list. If the caller lists the tool that searches, its own and live tools are
    found too; with `is_asked`, imported ones as well.
    """
    exposed = [one for source in snapshot.queried if (one := _exposed(source, snapshot, listed, selection)) is not None]
    if not any(tool.name == SEARCH and tool.origin is PrimitiveOrigin.BUILTIN for tool in listed):
        return exposed
    known = {one.source.id for one in exposed if one.source.kind is not QueriedKind.LISTED}
    found = [
        Queried(source=source, tools=tools, is_whole=False, names=snapshot.names)
        for source, tools in _listed_tools(listed, with_imported=is_asked).items()  # guard: found-tools-listed
        if source.id not in known
    ]
    ids = {one.source.id for one in found}
    return [*(one for one in exposed if one.source.id not in ids), *found]


def _exposed(
    source: QueriedSource, snapshot: Snapshot, listed: Sequence[Tool], selection: Selection | None
) -> Queried | None:
    by_name = snapshot.queried_live if source.kind is QueriedKind.LIVE else snapshot.operations
    known: Iterable[Tool] = by_name.get(source.name, {}).values()
    is_listed = source.kind is QueriedKind.LISTED
    if is_listed:  # guard: details-of-listed-tools
        known = [tool for tool in listed if tool.source == source.id and tool.is_shortened]
    tools = {tool.identity: tool for tool in known if selection is None or selection(tool)}
    if not tools and (selection is not None or is_listed):
        return None
    return Queried(source=source, tools=tools, is_whole=selection is None, names=snapshot.names)


def _listed_tools(listed: Sequence[Tool], *, with_imported: bool) -> Mapping[QueriedSource, Mapping[str, Tool]]:
    """The tools of a list by source and identity; all own tools are those of one source."""
    found: dict[QueriedSource, dict[str, Tool]] = {}
    for tool in listed:
        if tool.origin in _OWN:
            source, identity = OWN_TOOLS, f"{REMOTE_METHOD} {tool.name}"
        elif tool.origin is PrimitiveOrigin.LIVE:
            source, identity = _source_of(tool), f"{REMOTE_METHOD} {tool.name}"
        elif tool.origin is PrimitiveOrigin.SOURCE and with_imported:
            source, identity = _source_of(tool), tool.identity
        else:
            continue
        found.setdefault(source, {})[identity] = tool
    return found


def _source_of(tool: Tool) -> QueriedSource:
    return QueriedSource(id=tool.source, name=tool.source_name, version=0, kind=QueriedKind.FOUND)
