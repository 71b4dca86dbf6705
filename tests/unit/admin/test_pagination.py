"""Parts of lists that are searched, over a list that is read in many reads."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import anyio
import pytest
from anyio.lowlevel import checkpoint

from gateway.admin.list_search import ListRules
from gateway.admin.pagination import read_list
from gateway.domain.identifiers import TenantId
from gateway.domain.order import Order, follows, split_position
from gateway.domain.tenancy.tenants import Tenant
from gateway.kinds.identity import TENANT as TENANT_KIND
from gateway.registry.cursors import Cursors
from gateway.web.kinds.models import models_of

TENANT = TenantId("ten_a")
CURSORS = Cursors(b"k" * 32)
_RULES: ListRules[Tenant] = ListRules(name="tenants", keyed="slug", texts=TENANT_KIND.texts)
_QUERY = models_of(TENANT_KIND).query
MADE = datetime(2026, 1, 1, tzinfo=UTC)
MANY = 450


@dataclass(slots=True)
class _Stored:
    """Tenants in memory, many of one name and moment, and how often they were read."""

    tenants: list[Tenant] = field(
        default_factory=lambda: [
            Tenant(
                id=TenantId(f"ten_{number:03}"),
                slug=f"s{number:03}",
                name=f"Team {number % 3}",
                version=1,
                created_at=MADE + timedelta(seconds=number // 100),
            )
            for number in range(MANY)
        ]
    )
    reads: int = 0

    async def read(self, *, after: str | None, limit: int, order: Order) -> Sequence[Tenant]:
        self.reads += 1
        assert limit <= 201

        def place(one: Tenant) -> tuple[str, ...]:
            return split_position(_RULES.position_of(one, order))

        found = [one for one in self.tenants if follows(place(one), after, order)]
        return sorted(found, key=place, reverse=order.is_descending)[:limit]


async def _walk(stored: _Stored, **query: object) -> list[str]:
    found: list[str] = []
    given = {name: value for name, value in query.items() if value is not None}
    while True:
        asked = _QUERY.model_validate(given)
        items, cursor = await read_list(CURSORS, TENANT, _RULES, asked, read=stored.read)
        found += [one.slug for one in items]
        if cursor is None:
            return found
        given["cursor"] = cursor


@pytest.mark.parametrize("sort", [None, "slug", "-slug", "name", "-name", "created_at", "-created_at"])
@pytest.mark.parametrize("limit", [50, 200])
async def test_parts_are_complete_where_many_are_equal(sort: str | None, limit: int) -> None:
    """Ours: each item is in one part, whatever it is ordered by and however many have the same value (ADM-1)."""
    stored = _Stored()
    assert sorted(await _walk(stored, sort=sort, limit=limit)) == [one.slug for one in stored.tenants]
    expected = sorted(one.slug for one in stored.tenants if one.name == "Team 1")
    assert sorted(await _walk(stored, sort=sort, limit=limit, search="TEAM 1")) == expected


async def test_a_search_reads_a_list_once_at_most() -> None:
    """Ours: a part that is found early ends the reading, and one that finds nothing ends with the list (ADM-1)."""
    stored = _Stored()
    assert await _walk(stored, search="s449") == ["s449"]
    assert stored.reads == 3
    stored.reads = 0
    assert await _walk(stored, search="none") == []
    assert stored.reads == 3
    items, cursor = await read_list(
        CURSORS, TENANT, _RULES, _QUERY.model_validate({"search": "s0", "limit": 2}), read=_Stored().read
    )
    assert ([one.slug for one in items], cursor is None) == (["s000", "s001"], False)


async def test_a_text_is_searched_as_it_is_stored() -> None:
    """Ours: composed and decomposed letters are one in a search; a text of both is not normalized for it (TEN-5).

    Normalizing takes quadratic time: half a second for a description of 16,000 combining marks.
    """
    composed, decomposed = "\N{LATIN SMALL LETTER A WITH DIAERESIS}", "a\N{COMBINING DIAERESIS}"
    stored = _Stored()
    names = (composed * 2, decomposed * 2, composed + decomposed)
    stored.tenants = [replace(tenant, name=name) for tenant, name in zip(stored.tenants, names, strict=False)]

    for searched in (composed * 2, decomposed * 2, (composed * 2).upper()):
        assert await _walk(stored, search=searched) == [tenant.slug for tenant in stored.tenants[:2]]


async def test_other_requests_are_served_while_a_list_is_compared() -> None:
    """Ours: the event loop is free after every 20 items (TEN-5)."""
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await checkpoint()

    async with anyio.create_task_group() as group:
        group.start_soon(count)
        assert await _walk(_Stored(), search="nothing of this name") == []
        group.cancel_scope.cancel()

    assert turns >= MANY // 20
