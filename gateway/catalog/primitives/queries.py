"""Queries of a tenant's primitives for the admin API: all origins, including disabled and hidden primitives."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from gateway.catalog.etags import tag_of
from gateway.catalog.live.visible_primitives import visible_live
from gateway.catalog.overrides.overlay import overlay
from gateway.catalog.primitives.constraints import code_of
from gateway.catalog.primitives.safety_levels import with_effective_levels
from gateway.catalog.snapshots.composition import query_tools
from gateway.catalog.transaction import CatalogContext
from gateway.domain.identifiers import TenantId
from gateway.domain.order import KEYED, Order, follows, write_moment
from gateway.domain.overrides import LoadedOperation, Override
from gateway.domain.primitives import Family, Primitive
from gateway.domain.tenancy.own_primitives import to_primitive
from gateway.domain.tenancy.policy import Safety
from gateway.domain.tools import PrimitiveOrigin, Tool
from gateway.errors import NotFound
from gateway.openapi.operation.methods import method_safety
from gateway.store import operations, primitives, tool_aliases
from gateway.store.engine import Db
from gateway.store.kinds.primitives import ROWS
from gateway.store.sources import sources

_REASONS = {
    Safety.SAFE: "{} only reads",
    Safety.MODERATE: "{} changes data",
    Safety.DANGEROUS: "{} removes data",
}
_DECLARED_BY_DOCUMENT = "its document declares this level"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One listed primitive: an imported or built-in tool, or a primitive of the tenant, of Python code or of a live
    source.
    """

    item: Tool | Primitive
    hides_code: bool = False
    """True if a Python primitive has the same name and is hidden by this one."""
    override: Override | None = None
    """The override of an imported tool."""
    document: Tool | None = None
    """The imported tool as its document defines it, if an override applies."""

    @property
    def name(self) -> str:
        """The name, URI or URI template that identifies it in its family."""
        return self.item.name

    @property
    def id(self) -> str:
        """The id. The id of a Python primitive is derived from its name; a built-in tool has its name as id."""
        return self.item.id if isinstance(self.item, Primitive) else self.item.operation or self.item.name

    @property
    def created_at(self) -> datetime | None:
        """Time of creation; None if it is unknown."""
        return self.item.created_at if isinstance(self.item, Primitive) else None

    @property
    def tag(self) -> str:
        """The version as an opaque tag, the override's version included."""
        tag = tag_of(self.item)
        return tag if self.override is None else f"{tag}.{self.override.id}.{self.override.version}"

    @property
    def is_enabled(self) -> bool:
        """False if the tenant has disabled the primitive or, by an override, the imported tool."""
        if isinstance(self.item, Primitive):
            return self.item.enabled
        return self.override is None or self.override.enabled is not False

    @property
    def is_hidden(self) -> bool:
        """True if an override hides the imported tool from clients' lists."""
        return self.override is not None and self.override.hidden is True


async def page_primitives(
    tenant: TenantId, catalog: CatalogContext, family: Family, *, after: str | None, limit: int, order: Order = KEYED
) -> Sequence[Listed]:
    """One page of the tenant's primitives of a family, by default sorted by name.

    Tools can be ordered by name only, because imported tools have no time of creation.
    """
    position = partial(_position_of, order=order)
    async with catalog.store.reading(tenant) as db:
        code = await code_of(tenant, catalog, db)
        of_code = [one for one in code if one.family is family]
        stored = await ROWS[family].page(tenant, db, after=after, limit=limit, order=order)
        own = [to_primitive(one) for one in stored]
        imported = await _imported(tenant, db, after=after, limit=limit, order=order) if family is Family.TOOL else ()
        builtin = [tool for tool in await _builtin(tenant, db, family) if follows((tool.name,), after, order)]
        taken_names = {*(one.name for one in own), *(tool.name for tool in builtin), *(one.name for one in imported)}
        if of_code and order.by is not None:  # the primitive that hides a Python primitive may be on another page
            taken_names.update(await primitives.names(tenant, db, family))
        live = await visible_live(tenant, db, code)
        unstored = [
            *(one for one in of_code if one.name not in taken_names),
            *(one for one in live if one.family is family),
        ]
        added = [one for one in unstored if follows(position(Listed(item=one)), after, order)]
        effective = await with_effective_levels(tenant, db, [*own, *added], [*code, *live])
    hidden = {one.name for one in of_code if one.name in taken_names}
    items: list[Tool | Primitive] = [*effective, *builtin]
    listed = sorted([*(Listed(item=item) for item in items), *imported], key=position, reverse=order.is_descending)
    return [replace(one, hides_code=one.name in hidden) for one in listed[:limit]]


async def _imported(tenant: TenantId, db: Db, *, after: str | None, limit: int, order: Order) -> Sequence[Listed]:
    found = await operations.page(tenant, db, after=after, limit=limit, order=order)
    return [show_operation(one) for one in found]


def show_operation(loaded: LoadedOperation) -> Listed:
    """An effective imported tool, with its override and the tool that its document defines."""
    if loaded.override is None:
        return Listed(item=explain_level(loaded.tool))
    tool = overlay(loaded.tool, loaded.override)
    return Listed(item=explain_level(tool), override=loaded.override, document=explain_level(loaded.tool))


async def get_listed(
    tenant: TenantId, catalog: CatalogContext, family: Family, name: str, *, takes_old_names: bool = False
) -> Listed:
    """The tenant's primitive of this name or id; on request, also by an old name that clients can still call.

    Raises:
        NotFound: the tenant has no such primitive.
    """
    async with catalog.store.reading(tenant) as db:
        code = await code_of(tenant, catalog, db)
        added = [one for one in code if one.family is family]
        live = await visible_live(tenant, db, code)
        unstored = [*added, *(one for one in live if one.family is family)]
        try:
            found = await _find(tenant, db, family, name, unstored=unstored)
        except NotFound:
            renamed: Mapping[str, str] = await tool_aliases.resolve(tenant, db, [name]) if takes_old_names else {}
            if family is not Family.TOOL or name not in renamed:
                raise
            found = await _find(tenant, db, family, renamed[name], unstored=unstored)
        if isinstance(found.item, Primitive):
            [effective] = await with_effective_levels(tenant, db, [found.item], [*code, *live])
            found = replace(found, item=effective)
    is_hiding = found.item.origin is not PrimitiveOrigin.CODE and any(one.name == found.name for one in added)
    return replace(found, hides_code=is_hiding)


async def _find(tenant: TenantId, db: Db, family: Family, name: str, *, unstored: Sequence[Primitive]) -> Listed:
    own = await ROWS[family].get(tenant, db, name)
    if own is not None:
        return Listed(item=to_primitive(own))
    if family is Family.TOOL:
        imported = await operations.find_named(tenant, db, name)
        if imported is not None:
            return show_operation(imported)
        builtin = next((tool for tool in await _builtin(tenant, db, family) if tool.name == name), None)
        if builtin is not None:
            return Listed(item=builtin)
    added = next((one for one in unstored if name in {one.name, one.id}), None)
    if added is None:
        raise NotFound(f"no such {family.replace('_', ' ')}")
    return Listed(item=added)


async def _builtin(tenant: TenantId, db: Db, family: Family) -> Sequence[Tool]:
    """The query tools, if a source is exposed to them; `get_endpoint_details`, if a tool lists a shortened schema."""
    if family is not Family.TOOL:
        return ()
    if await sources.queried(tenant, db):
        return query_tools()
    return query_tools(only_details=True) if await operations.has_shortened(tenant, db) else ()


def explain_level(tool: Tool) -> Tool:
    """The tool with the reason for its safety level: the HTTP method, or a level that the document declares."""
    if tool.safety_reasons:
        return tool
    method = tool.identity.partition(" ")[0]
    is_methods = tool.safety is method_safety(method)
    return replace(
        tool, safety_reasons=(_REASONS[tool.safety].format(method) if is_methods else _DECLARED_BY_DOCUMENT,)
    )


def _position_of(listed: Listed, order: Order) -> tuple[str, ...]:
    return (listed.name,) if order.by is None else (write_moment(listed.created_at), listed.id)
