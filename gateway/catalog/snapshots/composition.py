"""Composition of a tenant's effective primitives from stored, Python and live primitives."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from gateway.catalog.overrides.overlay import apply_overrides, is_hidden, is_shown
from gateway.catalog.primitives.safety import Levels, called_by, settle_levels
from gateway.catalog.snapshots.live_primitives import NO_OFFER, HiddenLivePrimitive, LiveOffer, split_hidden_live
from gateway.catalog.snapshots.python_primitives import split_hidden
from gateway.domain.identifiers import PrimitiveId
from gateway.domain.listed.names import UNCHANGED, ListedNames
from gateway.domain.overrides import Alias, LoadedOperation
from gateway.domain.primitives import OPERATION, TOOL, Family, Primitive
from gateway.domain.sources import Exposure
from gateway.domain.tenancy.policy import Safety
from gateway.domain.tools import PrimitiveOrigin, Tool
from gateway.openapi.operation.names import RESERVED
from gateway.openapi.query.remote_tools import REMOTE_METHOD
from gateway.openapi.query.tools import CALL, DEFINITIONS, DETAILS

_READ_REASON = "it only reads the documents of the tenant's sources"
_CALL_REASON = "the policy applies to the called operation, as in a call of its tool"


@dataclass(frozen=True, slots=True, kw_only=True)
class Renamed:
    """An imported tool that had another name, and the time until which the old name can be called."""

    tool: Tool
    until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Composition:
    """The effective primitives, each family sorted by name, and the enabled operations by source and name."""

    tools: tuple[Tool, ...]
    resources: tuple[Primitive, ...]
    templates: tuple[Primitive, ...]
    prompts: tuple[Primitive, ...]
    operations: Mapping[str, Mapping[str, Tool]]
    hidden: Sequence[Primitive]
    """Python primitives whose names are taken in the tenant."""
    unlisted: Mapping[str, Tool]
    """Imported tools by name that an override hides: handlers may call them, clients may not."""
    renamed: Mapping[str, Renamed]
    """Imported tools by old name, without names that another tool has now."""
    hidden_live: Sequence[HiddenLivePrimitive] = ()
    """Primitives of live sources whose names are taken in the tenant."""
    queried_live: Mapping[str, Mapping[str, Tool]] = field(default_factory=dict[str, Mapping[str, Tool]])
    """Tools of each live source that query tools show, by identity."""
    names: ListedNames = UNCHANGED
    """The names under which tools are listed."""


def compose(
    operations: Sequence[LoadedOperation],
    own: Sequence[Primitive],
    code: Sequence[Primitive],
    *,
    with_queries: bool = False,
    aliases: Sequence[Alias] = (),
    offer: LiveOffer = NO_OFFER,
) -> Composition:
    """Compose the enabled primitives; `with_queries`, or a live source that is exposed to queries, adds the query
    tools.

    A tool with a shortened input schema adds only the query tool that returns details.

    A Python primitive is hidden if the tenant has a primitive of the same name, even a disabled one. A primitive of a
    live source is hidden by any other of the same name, and by an old name that can still be called.
    """
    exposures = {one.name: one.expose for one in offer.sources if one.expose is not Exposure.TOOLS}
    builtin = _builtin(operations, with_queries=with_queries or bool(exposures))
    taken_names = [(primitive.family, primitive.name) for primitive in own]
    taken_names += [(Family.TOOL, tool.name) for tool in builtin]
    taken_names += [(Family.TOOL, operation.tool.name) for operation in operations]
    visible_code, hidden = split_hidden(code, taken_names)
    taken_names += [(primitive.family, primitive.name) for primitive in visible_code]
    effective = apply_overrides(operations)
    renamed = _renamed(aliases, effective, {name for family, name in taken_names if family is Family.TOOL})
    taken_names += [(Family.TOOL, alias.name) for alias in aliases]
    live, hidden_live = split_hidden_live(offer, taken_names)
    imported = [operation.tool for operation in effective if is_shown(operation)]
    unlisted = {one.tool.name: one.tool for one in effective if one.is_listed and is_hidden(one)}
    by_source = index_operations(effective, renamed)
    callable_tools = {tool.name: tool for tool in imported} | unlisted | {old: one.tool for old, one in renamed.items()}
    called_levels = levels_of(called_by_any([*own, *visible_code]), callable_tools, by_source)
    all_primitives = settle_levels([*own, *visible_code, *live], called_levels)
    visible = sorted((one for one in all_primitives if one.enabled), key=_name)
    queried, tools = {name: dict[str, Tool]() for name in exposures}, [*imported, *builtin]
    for one in visible:
        if one.family is not Family.TOOL:
            continue
        tool, exposure = tool_of(one), exposures.get(one.source_name) if one.origin is PrimitiveOrigin.LIVE else None
        if exposure is not None:
            tool = replace(tool, identity=f"{REMOTE_METHOD} {tool.name}")
            queried[one.source_name][tool.identity] = tool
        if exposure is not Exposure.QUERY:
            tools.append(tool)
    return Composition(
        tools=tuple(sorted(tools, key=_tool_name)),
        resources=_of(Family.RESOURCE, visible),
        templates=_of(Family.TEMPLATE, visible),
        prompts=_of(Family.PROMPT, visible),
        operations=by_source,
        hidden=hidden,
        unlisted=unlisted,
        renamed=renamed,
        hidden_live=hidden_live,
        queried_live=queried,
        names=ListedNames(_stored_names(operations, effective, own, code, offer=offer, aliases=aliases)),
    )


def _stored_names(
    operations: Sequence[LoadedOperation],
    effective: Sequence[LoadedOperation],
    own: Sequence[Primitive],
    code: Sequence[Primitive],
    *,
    offer: LiveOffer,
    aliases: Sequence[Alias],
) -> Iterator[str]:
    """The names of all tools of the tenant, also of disabled, hidden and detached ones, and their former names."""
    yield from RESERVED
    yield from (one.tool.name for operation in (operations, effective) for one in operation)
    yield from (one.name for one in (*own, *code) if one.family is Family.TOOL)
    found = (one.primitive for remembered in offer.found.values() for one in remembered)
    yield from (one.name for one in found if one.family is Family.TOOL)
    yield from (alias.name for alias in aliases)


def _builtin(operations: Iterable[LoadedOperation], *, with_queries: bool) -> Sequence[Tool]:
    if with_queries:
        return query_tools()
    has_shortened = any(one.is_listed and one.tool.is_shortened for one in operations)
    return query_tools(only_details=True) if has_shortened else ()


def query_tools(*, only_details: bool = False) -> Sequence[Tool]:
    """The query tools.

    The policy decides on the operation that `call_endpoint` calls by the operation's own safety level.
    """
    return [
        Tool(
            name=name,
            definition=definition,
            safety=Safety.SAFE,
            safety_reasons=(_CALL_REASON if name == CALL else _READ_REASON,),
            origin=PrimitiveOrigin.BUILTIN,
        )
        for name, definition in DEFINITIONS.items()
        if name == DETAILS or not only_details
    ]


def tool_of(primitive: Primitive) -> Tool:
    """The effective tool of a primitive of the family `tool`."""
    is_stored = primitive.origin is not PrimitiveOrigin.CODE
    return Tool(
        name=primitive.name,
        definition=primitive.definition,
        safety=primitive.safety,
        safety_reasons=primitive.safety_reasons,
        origin=primitive.origin,
        primitive=primitive.id if is_stored else PrimitiveId(""),
        handler=primitive.handler,
        counted=primitive.counted,
        levels=primitive.levels,
        source_name=primitive.source_name,
    )


def index_operations(
    operations: Sequence[LoadedOperation], renamed: Mapping[str, Renamed] | None = None
) -> Mapping[str, Mapping[str, Tool]]:
    """Operations by source name, then by operationId, identity, tool name and old name, in this order of precedence.

    An operationId that a document contains twice is dropped, because the choice would be arbitrary.
    """
    found: dict[str, dict[str, Tool]] = {}
    for old, one in (renamed or {}).items():
        found.setdefault(one.tool.source_name, {})[old] = one.tool
    for operation in operations:
        tools = found.setdefault(operation.tool.source_name, {})
        tools[operation.tool.name] = operation.tool
    for operation in operations:
        found[operation.tool.source_name][operation.tool.identity] = operation.tool
    seen: set[tuple[str, str]] = set()
    for operation in operations:
        if operation.operation_id is None:
            continue
        key = (operation.tool.source_name, operation.operation_id)
        if key in seen:
            found[key[0]].pop(key[1], None)
        else:
            found[key[0]][key[1]] = operation.tool
        seen.add(key)
    return found


def called_by_any(primitives: Iterable[Primitive]) -> frozenset[str]:
    """References to all tools and operations that these primitives call."""
    return frozenset(reference for primitive in primitives for reference in called_by(primitive))


def levels_of(
    references: Iterable[str], imported: Mapping[str, Tool], operations: Mapping[str, Mapping[str, Tool]]
) -> Levels:
    """Safety levels of the referenced imported tools and operations; `imported` contains tools by callable name."""
    found: dict[str, Safety] = {}
    for reference in frozenset(references):
        tool = imported.get(reference.removeprefix(TOOL)) if reference.startswith(TOOL) else None
        if tool is not None:
            found[reference] = tool.safety
        elif reference.startswith(OPERATION):
            source, _, key = reference.removeprefix(OPERATION).partition(":")
            operation = operations.get(source, {}).get(key)
            if operation is not None:
                found[reference] = operation.safety
    return found


def _renamed(
    aliases: Sequence[Alias], operations: Sequence[LoadedOperation], taken: Container[str]
) -> Mapping[str, Renamed]:
    """The tool for each old name, unless another tool has that name now."""
    if not aliases:
        return {}
    tools = {(operation.tool.source, operation.tool.identity): operation.tool for operation in operations}
    return {
        alias.name: Renamed(tool=tools[key], until=alias.expires_at)
        for alias in aliases
        if alias.name not in taken and (key := (alias.source, alias.identity)) in tools  # guard: old-name-of-another
    }


def index_old_names(renamed: Mapping[str, Renamed]) -> Mapping[tuple[str, str], Sequence[str]]:
    """Old names by the source's name and the tool's name; empty for almost all tenants."""
    found: dict[tuple[str, str], list[str]] = {}
    for old, one in renamed.items():
        found.setdefault((one.tool.source_name, one.tool.name), []).append(old)
    return found


def _of(family: Family, primitives: Iterable[Primitive]) -> tuple[Primitive, ...]:
    return tuple(primitive for primitive in primitives if primitive.family is family)


def _name(primitive: Primitive) -> str:
    return primitive.name


def _tool_name(tool: Tool) -> str:
    return tool.name
