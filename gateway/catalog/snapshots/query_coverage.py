"""The query tools of a profile: those that its operations need, although no include rule names them."""

from collections.abc import Sequence

from gateway.catalog.snapshots.composition import Composition
from gateway.catalog.snapshots.snapshot import Snapshot
from gateway.domain.tenancy.profiles import Profile
from gateway.domain.tenancy.selection import Selection, compile_exclusion
from gateway.domain.tools import PrimitiveOrigin, Tool


def needed_queries(profile: Profile | None, offered: Snapshot | Composition, selection: Selection) -> Sequence[Tool]:
    """Return the query tools if the selection contains an operation that only they reach.

    Rules of methods, sources and tags match operations, so a profile that includes only these would otherwise have no
    tool for them. Query tools that the selection contains already, or that the profile excludes, are left out.
    """
    if profile is None or not profile.include:
        return ()
    missing = [tool for tool in offered.tools if tool.origin is PrimitiveOrigin.BUILTIN and not selection(tool)]
    if not missing:
        return ()
    reached = {tool.name for tool in offered.tools} | offered.unlisted.keys()
    sources = (*offered.operations.values(), *offered.queried_live.values())
    only_queried = (tool for source in sources for tool in source.values() if tool.name not in reached)
    if not any(selection(tool) for tool in only_queried):
        return ()
    excludes = compile_exclusion(profile)
    return [tool for tool in missing if not excludes(tool)]
