"""Reasons why clients do not see a tool: it is disabled, held for review, detached, or does not exist."""

from gateway.catalog.primitives.queries import get_listed
from gateway.catalog.snapshots.snapshots import load_offer
from gateway.catalog.transaction import CatalogContext
from gateway.domain.identifiers import TenantId
from gateway.domain.primitives import Family
from gateway.errors import NotFound


async def explain_absence(tenant: TenantId, catalog: CatalogContext, name: str) -> str:
    """The reason why the tenant's snapshot contains no tool with this name.

    Raises:
        NotFound: the tenant has no such tool at all.
    """
    try:
        listed = await get_listed(tenant, catalog, Family.TOOL, name)
    except NotFound:
        return await _explain_live(tenant, catalog, name)
    return "it is not active" if listed.is_enabled else "it is disabled"


async def _explain_live(tenant: TenantId, catalog: CatalogContext, name: str) -> str:
    async with catalog.store.reading(tenant) as db:
        offer = await load_offer(tenant, db)
    for source in offer.sources:
        for one in offer.found.get(source.id, ()):
            if one.primitive.family is Family.TOOL and one.primitive.name == name:
                if one.primitive.is_held:
                    return (
                        f"its definition at the live source {source.name} is new or changed, and has to be accepted "
                        f"first"
                    )
                return f"the live source {source.name} does not list it any more"
    raise NotFound("there is no such tool")
