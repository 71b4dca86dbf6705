"""The visible primitives of live sources, read without loading the rest of the catalog."""

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.catalog.snapshots.live_primitives import (
    NO_OFFER,
    HiddenLivePrimitive,
    LiveOffer,
    Place,
    split_hidden_live,
)
from gateway.catalog.snapshots.snapshots import load_offer
from gateway.domain.identifiers import TenantId
from gateway.domain.primitives import Family, Primitive
from gateway.store import operations, primitives, tool_aliases
from gateway.store.engine import Db

_OTHERS = (Family.RESOURCE, Family.TEMPLATE, Family.PROMPT)


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveView:
    """The live sources of a tenant with all their primitives: visible and hidden ones."""

    offer: LiveOffer = NO_OFFER
    shown: Sequence[Primitive] = ()
    hidden: Sequence[HiddenLivePrimitive] = ()


async def visible_live(tenant: TenantId, db: Db, code: Sequence[Primitive]) -> Sequence[Primitive]:
    """The primitives of live sources with free names, in the form of snapshots; `code` are the Python primitives."""
    return (await view_live(tenant, db, code)).shown


async def view_live(tenant: TenantId, db: Db, code: Sequence[Primitive]) -> LiveView:
    """The primitives of live sources that clients see, and those that other primitives hide."""
    offer = await load_offer(tenant, db)
    if not offer.sources:
        return LiveView()
    taken_names: list[Place] = [(Family.TOOL, name) for name in await operations.names(tenant, db)]
    taken_names += [(Family.TOOL, alias.name) for alias in await tool_aliases.active(tenant, db)]
    for family in _OTHERS:
        taken_names += [(family, name) for name in await primitives.names(tenant, db, family)]
    shown, hidden = split_hidden_live(offer, [*taken_names, *((one.family, one.name) for one in code)])
    return LiveView(offer=offer, shown=shown, hidden=hidden)
