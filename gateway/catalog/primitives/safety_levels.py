"""Effective safety levels of some primitives, without loading the whole catalog."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from gateway.catalog.overrides.overlay import apply_overrides
from gateway.catalog.primitives.safety import Levels, called_by, settle_levels
from gateway.catalog.snapshots.composition import index_operations, levels_of
from gateway.domain.identifiers import TenantId
from gateway.domain.primitives import OPERATION, TOOL, Family, Primitive
from gateway.domain.tenancy.policy import Safety
from gateway.store import operations, primitives, tool_aliases
from gateway.store.engine import Db


async def with_effective_levels(
    tenant: TenantId, db: Db, found: Sequence[Primitive], unstored: Sequence[Primitive]
) -> Sequence[Primitive]:
    """The primitives with their effective levels; `unstored` contains those of Python code and live sources."""
    if not any(called_by(primitive) for primitive in found):
        return settle_levels(found, {})
    other_tools = [*(one for one in unstored if one.family is Family.TOOL), *await primitives.tool_levels(tenant, db)]
    tools = {f"{TOOL}{tool.name}": tool for tool in other_tools}
    tools |= {f"{TOOL}{one.name}": one for one in found if one.family is Family.TOOL}
    references = _reachable(found, tools)
    imported = await _imported(tenant, db, references.difference(tools))
    ids = {primitive.id for primitive in found}
    others = [tool for reference, tool in tools.items() if reference in references and tool.id not in ids]
    return settle_levels([*found, *others], imported)[: len(found)]


async def tool_levels(tenant: TenantId, db: Db, names: Collection[str]) -> Mapping[str, Safety]:
    """Effective levels of the imported tools with these names; old names count while they can be called."""
    found = dict(await operations.levels(tenant, db, names))
    others = [name for name in names if name not in found]
    if not others:
        return found
    old = await tool_aliases.resolve(tenant, db, others)
    current = await operations.levels(tenant, db, set(old.values()))
    return found | {name: current[tool] for name, tool in old.items() if tool in current}


def _reachable(found: Iterable[Primitive], tools: Mapping[str, Primitive]) -> frozenset[str]:
    """References to the tools and operations that these primitives call, directly or through other tools."""
    visited: set[str] = set()
    pending = [reference for primitive in found for reference in called_by(primitive)]
    while pending:
        reference = pending.pop()
        if reference not in visited:
            visited.add(reference)
            pending.extend(called_by(tools[reference]) if reference in tools else ())
    return frozenset(visited)


async def _imported(tenant: TenantId, db: Db, references: Iterable[str]) -> Levels:
    all_references = list(references)
    names = [one.removeprefix(TOOL) for one in all_references if one.startswith(TOOL)]
    pairs = [one.removeprefix(OPERATION).partition(":") for one in all_references if one.startswith(OPERATION)]
    levels_by_reference: dict[str, Safety] = {}
    if names:
        levels = await tool_levels(tenant, db, names)
        levels_by_reference.update({f"{TOOL}{name}": level for name, level in levels.items()})
    if pairs:
        pinned = await operations.find(tenant, db, {pair[0] for pair in pairs}, {pair[2] for pair in pairs})
        levels_by_reference.update(levels_of(all_references, {}, index_operations(apply_overrides(pinned))))
    return levels_by_reference
