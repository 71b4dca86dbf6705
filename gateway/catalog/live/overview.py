"""Live sources in the view of admins: counts of their primitives, held definitions, hidden names."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from gateway.catalog.live.live_sources import find_live_source
from gateway.catalog.live.visible_primitives import LiveView, view_live
from gateway.catalog.primitives.constraints import code_of
from gateway.catalog.transaction import CatalogContext
from gateway.domain.identifiers import TenantId
from gateway.domain.json_access import as_object, point
from gateway.domain.json_text import decode_object
from gateway.domain.live_sources import LiveSource, RememberedPrimitive
from gateway.domain.order import KEYED, Order, follows
from gateway.domain.primitives import Family
from gateway.store.live import live_primitives

_MAX_DIFFERENCES = 50


class LivePrimitiveState(StrEnum):
    """State of a primitive of a live source."""

    VISIBLE = "visible"
    """Clients can see and use it."""
    HELD = "held"
    """Its definition differs from the accepted one, or it is new; an admin has to accept it."""
    HIDDEN = "hidden"
    """Another primitive of the tenant has its name."""
    ABSENT = "absent"
    """The source does not list it now; its accepted definition is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LivePrimitiveView:
    """One primitive of a live source, and its state. `owner` is the live source that uses the name, if any."""

    remembered: RememberedPrimitive
    state: LivePrimitiveState
    owner: str = ""

    @property
    def family(self) -> Family:
        """The family of the primitive."""
        return self.remembered.primitive.family

    @property
    def place(self) -> str:
        """Sort key in lists of the source's primitives: family, then remote name."""
        return f"{self.family}:{self.remembered.primitive.remote}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveOverview:
    """A live source, the number of its visible primitives by family, and the primitives that need attention."""

    source: LiveSource
    counts: Mapping[Family, int]
    needs_attention: Sequence[LivePrimitiveView] = ()
    """Held and hidden primitives, and those with suspicious texts."""

    def count(self, state: LivePrimitiveState) -> int:
        """Return the number of held, or of hidden, primitives."""
        return sum(one.state is state for one in self.needs_attention)


async def describe_live_sources(
    tenant: TenantId, catalog: CatalogContext, found: Sequence[LiveSource]
) -> Sequence[LiveOverview]:
    """The live sources with the numbers and states of their primitives."""
    async with catalog.store.reading(tenant) as db:
        view = await view_live(tenant, db, await code_of(tenant, catalog, db))
    visible_counts = Counter((one.source_name, one.family) for one in view.shown)
    return [
        LiveOverview(
            source=source,
            counts={family: visible_counts[source.name, family] for family in Family},
            needs_attention=[
                one
                for one in _states(source, view.offer.found.get(source.id, ()), view)
                if one.state in {LivePrimitiveState.HELD, LivePrimitiveState.HIDDEN} or _is_suspicious(one)
            ],
        )
        for source in found
    ]


async def page_live_primitives(
    tenant: TenantId, catalog: CatalogContext, name: str, *, after: str | None, limit: int, order: Order = KEYED
) -> Sequence[LivePrimitiveView]:
    """One page of the stored primitives of a live source, sorted by family, then by remote name.

    Raises:
        NotFound: the tenant has no such live source.
    """
    async with catalog.store.reading(tenant) as db:
        source = await find_live_source(tenant, db, name)
        view = await view_live(tenant, db, await code_of(tenant, catalog, db))
        remembered = await live_primitives.of_source(tenant, db, source.id)
    states = _states(source, remembered, view)
    found = sorted(states, key=lambda one: one.place, reverse=order.is_descending)
    return [one for one in found if follows((one.place,), after, order)][:limit]


def differences(accepted: bytes | None, held: bytes) -> Sequence[str]:
    """JSON Pointers to the members in which a held definition differs from the accepted one, at most 50."""
    if accepted is None:
        return []
    found: list[str] = []
    pending: list[tuple[str, object, object]] = [("", decode_object(accepted), decode_object(held))]
    while pending and len(found) < _MAX_DIFFERENCES:
        pointer, old, new = pending.pop()
        before, after = as_object(old), as_object(new)
        if before is None or after is None:
            found += [pointer] if old != new else []
            continue
        for name in sorted({*before, *after}, reverse=True):
            member_pointer = pointer + point(name)
            if name in before and name in after:
                pending.append((member_pointer, before[name], after[name]))
            else:
                found.append(member_pointer)
    return sorted(found)[:_MAX_DIFFERENCES]


def _is_suspicious(one: LivePrimitiveView) -> bool:
    return bool(one.remembered.findings) and one.state is not LivePrimitiveState.ABSENT


def _states(
    source: LiveSource, remembered: Sequence[RememberedPrimitive], view: LiveView
) -> Sequence[LivePrimitiveView]:
    hidden = {(one.family, one.remote): one.owner for one in view.hidden if one.source == source.id}
    return [_state(one, hidden) for one in remembered]


def _state(one: RememberedPrimitive, hidden: Mapping[tuple[Family, str], str]) -> LivePrimitiveView:
    place = one.primitive.family, one.primitive.remote
    state = LivePrimitiveState.VISIBLE
    if not one.is_present:
        state = LivePrimitiveState.ABSENT
    elif one.primitive.is_held:
        state = LivePrimitiveState.HELD
    elif place in hidden:
        state = LivePrimitiveState.HIDDEN
    return LivePrimitiveView(remembered=one, state=state, owner=hidden.get(place, ""))
