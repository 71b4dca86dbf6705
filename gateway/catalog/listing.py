"""Everything a tenant has of a family, wherever it comes from and whether or not clients see it now."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gateway.catalog.catalog import Catalog
from gateway.catalog.checking import code_of
from gateway.catalog.composing import query_tools
from gateway.catalog.levels import settle
from gateway.domain.identifiers import TenantId
from gateway.domain.policy import Safety
from gateway.domain.primitives import Family, Primitive
from gateway.domain.tools import Origin, Tool
from gateway.errors import NotFound
from gateway.store import operations, primitives, sources
from gateway.store.engine import Db

_REASONS = {
    Safety.SAFE: "{} only reads",
    Safety.MODERATE: "{} changes what it is sent to",
    Safety.DANGEROUS: "{} removes what it is sent to",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One primitive: an imported tool, or one of the tenant's own or of code."""

    item: Tool | Primitive
    hides_code: bool = False
    """Whether code registered one of this name, which the tenant's own hides."""

    @property
    def name(self) -> str:
        """What it is addressed by."""
        return self.item.name

    @property
    def id(self) -> str:
        """What addresses it whatever it is called."""
        return self.item.id if isinstance(self.item, Primitive) else self.item.operation or self.item.name


async def page_primitives(
    tenant: TenantId, catalog: Catalog, family: Family, *, after: str | None, limit: int
) -> Sequence[Listed]:
    """The tenant's primitives of a family in order of names."""
    async with catalog.store.reading(tenant) as db:
        code = await code_of(tenant, catalog, db)
        own = await primitives.page(tenant, db, family, after=after, limit=limit)
        imported = await operations.page(tenant, db, after=after, limit=limit) if family is Family.TOOL else ()
        builtin = [tool for tool in await _builtin(tenant, db, family) if after is None or tool.name > after]
        added = [one for one in code if one.family is family and (after is None or one.name > after)]
        taken = {*(one.name for one in own), *(tool.name for tool in (*imported, *builtin))}
        shown = [*own, *(one for one in added if one.name not in taken)]
        settled = await settle(tenant, db, shown, code)
    hidden = {one.name for one in added if one.name in taken}
    items: list[Tool | Primitive] = [*settled, *builtin, *(_explain(tool) for tool in imported)]
    listed = [Listed(item=item, hides_code=item.name in hidden) for item in items]
    return sorted(listed, key=_name)[:limit]


async def get_listed(tenant: TenantId, catalog: Catalog, family: Family, name: str) -> Listed:
    """The tenant's primitive of this name or id.

    Raises:
        NotFound: the tenant has none.
    """
    async with catalog.store.reading(tenant) as db:
        code = await code_of(tenant, catalog, db)
        added = [one for one in code if one.family is family]
        found = await _find(tenant, db, family, name, added)
        if isinstance(found, Primitive):
            [found] = await settle(tenant, db, [found], code)
    is_hiding = found.origin is not Origin.CODE and any(one.name == found.name for one in added)
    return Listed(item=found if isinstance(found, Primitive) else _explain(found), hides_code=is_hiding)


async def _find(tenant: TenantId, db: Db, family: Family, name: str, code: Sequence[Primitive]) -> Tool | Primitive:
    own = await primitives.get(tenant, db, family, name)
    if own is not None:
        return own
    if family is Family.TOOL:
        imported = await operations.get(tenant, db, name)
        if imported is not None:
            return imported
        builtin = next((tool for tool in await _builtin(tenant, db, family) if tool.name == name), None)
        if builtin is not None:
            return builtin
    added = next((one for one in code if name in {one.name, one.id}), None)
    if added is None:
        raise NotFound(f"no such {family.replace('_', ' ')}")
    return added


async def _builtin(tenant: TenantId, db: Db, family: Family) -> Sequence[Tool]:
    """The query tools, where a source is exposed to them."""
    return query_tools() if family is Family.TOOL and await sources.queried(tenant, db) else ()


def _explain(tool: Tool) -> Tool:
    """The tool with the reasons of its safety level; an imported operation is judged by its method."""
    if tool.safety_reasons:
        return tool
    method = tool.identity.partition(" ")[0]
    return replace(tool, safety_reasons=(_REASONS[tool.safety].format(method),))


def _name(listed: Listed) -> str:
    return listed.name
