"""Live sources in the view of admins: counts of their primitives, held definitions, hidden names."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import islice

from gateway.catalog.live.limits import MAX_DIFFERENCES, MAX_REVIEWED
from gateway.catalog.live.visible_primitives import LiveView, view_live
from gateway.catalog.primitives.constraints import code_of
from gateway.catalog.transaction import CatalogContext
from gateway.domain.identifiers import LiveSourceId, TenantId
from gateway.domain.json_access import as_object, point
from gateway.domain.json_text import decode_object
from gateway.domain.live_sources import (
    LiveCounts,
    LiveKind,
    LiveSessions,
    LiveSource,
    LiveStatus,
    RememberedPrimitive,
)
from gateway.domain.order import KEYED, Order, follows
from gateway.domain.primitives import Family
from gateway.store.live import live_primitives


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


async def read_statuses(tenant: TenantId, catalog: CatalogContext, found: Sequence[LiveSource]) -> Sequence[LiveStatus]:
    """The status of live sources, with the numbers of their primitives and those that an admin has to review."""
    async with catalog.store.reading(tenant) as db:
        view = await view_live(tenant, db, await code_of(tenant, catalog, db))
    visible = Counter((one.source_name, one.family) for one in view.shown)
    return [_status(one, visible, _states(one, view.offer.found.get(LiveSourceId(one.id), ()), view)) for one in found]


def _status(
    source: LiveSource, visible: Mapping[tuple[str, Family], int], states: Sequence[LivePrimitiveView]
) -> LiveStatus:
    held = [one for one in states if one.state is LivePrimitiveState.HELD]
    hidden = [one for one in states if one.state is LivePrimitiveState.HIDDEN]
    return replace(
        source.status,
        sessions=LiveSessions.PER_CALLER if source.kind is LiveKind.MCP else LiveSessions.SHARED,
        primitives=LiveCounts(
            tools=visible[source.name, Family.TOOL],
            resources=visible[source.name, Family.RESOURCE],
            templates=visible[source.name, Family.TEMPLATE],
            prompts=visible[source.name, Family.PROMPT],
            held=len(held),
            hidden=len(hidden),
        ),
        review=(
            *(f"held {_named(one)}" for one in islice(held, MAX_REVIEWED)),
            *(f"hidden {_named(one)}" for one in islice(hidden, MAX_REVIEWED)),
            *islice(_findings(states), MAX_REVIEWED),
        ),
    )


def _findings(states: Sequence[LivePrimitiveView]) -> Iterator[str]:
    for one in states:
        if one.state is not LivePrimitiveState.ABSENT:
            yield from (
                f"{_named(one)}: {each.kind} at {each.pointer}: {each.excerpt}" for each in one.remembered.findings
            )


def _named(one: LivePrimitiveView) -> str:
    return f"{one.family} {one.remembered.primitive.name}"


async def page_live_primitives(
    tenant: TenantId,
    catalog: CatalogContext,
    source: LiveSource,
    *,
    after: str | None,
    limit: int,
    order: Order = KEYED,
) -> Sequence[LivePrimitiveView]:
    """One page of the stored primitives of a live source, sorted by family, then by remote name."""
    async with catalog.store.reading(tenant) as db:
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
    while pending and len(found) < MAX_DIFFERENCES:
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
    return sorted(found)[:MAX_DIFFERENCES]


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
