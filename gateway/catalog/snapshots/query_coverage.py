"""The query tools of a profile: those that an include rule names, and those that its operations need."""

from collections.abc import Sequence

from gateway.catalog.snapshots.composition import Composition, query_tools
from gateway.catalog.snapshots.snapshot import Snapshot
from gateway.domain.tenancy.profiles import Profile
from gateway.domain.tenancy.selection import Selection, compile_exclusion
from gateway.domain.tools import PrimitiveOrigin, Tool


def asked_queries(profile: Profile | None) -> Sequence[Tool]:
    """Return the query tools that an include rule of the profile names exactly.

    They are listed even if no source is exposed to them, and then find all tools that the profile lists.
    """
    names = {name for rule in (() if profile is None else profile.include) for name in rule.names}
    return [tool for tool in query_tools() if tool.name in names] if names else ()


def added_queries(profile: Profile | None, offered: Snapshot | Composition, selection: Selection) -> Sequence[Tool]:
    """Return the query tools that the profile lists beside the offered tools of its selection."""
    asked = [tool for tool in asked_queries(profile) if selection(tool)]  # guard: asked-queries-chosen
    known = {tool.name for tool in offered.tools} if asked else ()
    return [*(tool for tool in asked if tool.name not in known), *_needed_queries(profile, offered, selection)]


def _needed_queries(profile: Profile | None, offered: Snapshot | Composition, selection: Selection) -> Sequence[Tool]:
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
