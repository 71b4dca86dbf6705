"""The effective tools of a tenant, wherever they come from, and why each is as safe as it is."""

from collections.abc import Sequence
from dataclasses import replace

from gateway.catalog.catalog import Catalog
from gateway.domain.identifiers import TenantId
from gateway.domain.policy import Safety
from gateway.domain.tools import Tool
from gateway.errors import NotFound
from gateway.store import operations

_REASONS = {
    Safety.SAFE: "{} only reads",
    Safety.MODERATE: "{} changes what it is sent to",
    Safety.DANGEROUS: "{} removes what it is sent to",
}


async def page_tools(tenant: TenantId, catalog: Catalog, *, after: str | None, limit: int) -> Sequence[Tool]:
    """The tenant's tools in order of names."""
    async with catalog.store.transaction(tenant) as db:
        tools = await operations.tools(tenant, db)
    wanted = sorted((tool for tool in tools if after is None or tool.name > after), key=_name)
    return [_explain(tool) for tool in wanted[:limit]]


async def get_tool(tenant: TenantId, catalog: Catalog, name: str) -> Tool:
    """The tool of this name.

    Raises:
        NotFound: the tenant has none.
    """
    async with catalog.store.transaction(tenant) as db:
        tools = await operations.tools(tenant, db)
    found = next((tool for tool in tools if tool.name == name), None)
    if found is None:
        raise NotFound("no such tool")
    return _explain(found)


def _explain(tool: Tool) -> Tool:
    """The tool with the reasons of its safety level; an imported operation is judged by its method."""
    if tool.safety_reasons:
        return tool
    method = tool.identity.partition(" ")[0]
    return replace(tool, safety_reasons=(_REASONS[tool.safety].format(method),))


def _name(tool: Tool) -> str:
    return tool.name
