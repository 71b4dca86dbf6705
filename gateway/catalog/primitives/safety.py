"""Effective safety levels of primitives: the level of a handler, combined with the levels of the tools it calls.

A primitive is stored with the level of its handler alone, and with references to the tools and operations it calls.
Their levels may change independently, so the levels are combined whenever the catalog is read. For example, an import
may turn a read into a delete. This raises the level of each `steps` handler that calls the operation, directly or
through other tools without a declared level.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from gateway.domain.primitives import OPERATION, TOOL, Family, Primitive
from gateway.domain.tenancy.policy import Safety

_ORDER = {level: rank for rank, level in enumerate((Safety.SAFE, Safety.MODERATE, Safety.DANGEROUS))}
_UNKNOWN = Safety.MODERATE

Levels = Mapping[str, Safety]
"""Safety levels by the reference that names a tool or an operation."""


def called_by(primitive: Primitive) -> Sequence[str]:
    """References to the tools and operations that the primitive's handler calls."""
    return [reference for reference in primitive.refers if reference.startswith((TOOL, OPERATION))]


def highest(levels: Iterable[Safety]) -> Safety:
    """The most harmful of the levels; safe if there are none."""
    return max(levels, key=_ORDER.__getitem__, default=Safety.SAFE)


def settle_levels(primitives: Iterable[Primitive], imported: Levels) -> Sequence[Primitive]:
    """The primitives with their effective levels and the reasons for them.

    `imported` contains the levels of imported tools and operations. A missing tool or operation is treated as moderate.
    """
    everything = list(primitives)
    tools = {f"{TOOL}{one.name}": one for one in everything if one.family is Family.TOOL}
    levels = {**imported, **_effective_levels(tools, imported)} if any(one.refers for one in everything) else {}
    return [_settle(primitive, levels) for primitive in everything]


def _effective_levels(tools: Mapping[str, Primitive], imported: Levels) -> dict[str, Safety]:
    """The level of each tool: from `_declared_level` if one is declared, otherwise the highest level that its calls
    reach.
    """
    levels = {
        name: _level_without(tool, tools, imported)
        if tool.override is None
        else _declared_level(tool, tool.override, imported)
        for name, tool in tools.items()
    }
    callers: dict[str, list[str]] = defaultdict(list)
    for name, tool in tools.items():
        if tool.override is None:
            for reference in called_by(tool):
                callers[reference].append(name)
    for level in (Safety.DANGEROUS, Safety.MODERATE):
        reached = [name for name, found in levels.items() if found is level]
        while reached:
            for caller in callers.get(reached.pop(), ()):
                if _ORDER[levels[caller]] < _ORDER[level]:
                    levels[caller] = level
                    reached.append(caller)
    return levels


def _level_without(tool: Primitive, tools: Mapping[str, Primitive], imported: Levels) -> Safety:
    """The highest level of a tool and its calls, without its calls of other tools in `tools`."""
    others = [imported.get(one, _UNKNOWN) for one in called_by(tool) if one not in tools]
    return highest([tool.assessed, *others])


def _settle(primitive: Primitive, levels: Levels) -> Primitive:
    if not primitive.refers and primitive.override is None:
        return primitive
    called = [(reference, levels.get(reference, _UNKNOWN)) for reference in called_by(primitive)]
    assessed = highest([primitive.assessed, *(level for _, level in called)])
    reasons = (*primitive.safety_reasons, *(_reason(reference, level) for reference, level in called))
    if primitive.override is None:
        return replace(primitive, safety=assessed, assessed=assessed, safety_reasons=reasons)
    message = [f"declared by the tenant; the assessed level is {assessed}"]
    counted = _declared_level(primitive, primitive.override, levels)
    if counted is not primitive.override:
        message.append(
            f"the policy treats it as {counted}, the level of the operation that it runs; declare a level for the "
            f"operation"
        )
    return replace(
        primitive,
        assessed=assessed,
        safety=primitive.override,
        counted=None if counted is primitive.override else counted,
        safety_reasons=(*message, *reasons),
    )


def _declared_level(primitive: Primitive, declared: Safety, levels: Levels) -> Safety:
    """The declared level, but at least the level of an operation that the handler runs directly."""
    operations = [one for one in called_by(primitive) if one.startswith(OPERATION)]
    return highest([declared, *(levels.get(one, _UNKNOWN) for one in operations)])  # guard: alias-level


def _reason(reference: str, level: Safety) -> str:
    if reference.startswith(TOOL):
        return f"calls {reference.removeprefix(TOOL)}, which is {level}"
    source, _, key = reference.removeprefix(OPERATION).partition(":")
    return f"calls {key} of {source}, which is {level}"
