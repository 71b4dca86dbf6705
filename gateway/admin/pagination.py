"""Pagination of lists by cursor.

A cursor is bound to the tenant, the list, and every parameter that selects or orders items.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

import orjson
from anyio.lowlevel import checkpoint

from gateway.admin.endpoint import tenant_of_cursors
from gateway.admin.list_search import ListRules, given_parameters, is_narrowed
from gateway.domain.identifiers import TenantId
from gateway.domain.order import Order
from gateway.errors import Fault, InvalidCursor
from gateway.registry.cursors import Cursors
from gateway.web.models import PageQuery

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

FACE = "admin"
_READ_BATCH_SIZE = 200
"""Items per read of a list that is searched or filtered; equal to the largest page."""
_COMPARE_BATCH_SIZE = 20
"""Items compared before the event loop runs other tasks."""


class Read(Protocol[T_co]):
    """Reads at most `limit` items after the position `after`."""

    def __call__(self, *, after: str | None, limit: int) -> Awaitable[Sequence[T_co]]:
        """Return the items, ordered by position."""
        ...


class ReadInOrder(Protocol[T_co]):
    """Reads at most `limit` items after the position `after`, in the requested order."""

    def __call__(self, *, after: str | None, limit: int, order: Order) -> Awaitable[Sequence[T_co]]:
        """Return the items, ordered by position."""
        ...


async def read_list(
    cursors: Cursors,
    tenant: TenantId,
    listing: ListRules[T],
    query: PageQuery,
    *,
    read: ReadInOrder[T],
    sees: Callable[[T], bool] | None = None,
) -> tuple[Sequence[T], str | None]:
    """Return the requested page of a list, and the cursor of the next page; the cursor is None on the last page.

    A list that is searched or filtered is read until the page is full or the list ends, and so is one of which the
    caller sees a part.

    Raises:
        InvalidCursor: the cursor was not issued for this tenant, list, search, filters and order.
    """
    order = listing.order_of(query)

    async def read_matching(*, after: str | None, limit: int) -> Sequence[T]:
        size = _READ_BATCH_SIZE if sees is not None or is_narrowed(query) else limit
        found: list[T] = []
        while len(found) < limit:
            items = await read(after=after, limit=size, order=order)
            for start in range(0, len(items), _COMPARE_BATCH_SIZE):
                compared = items[start : start + _COMPARE_BATCH_SIZE]
                seen = compared if sees is None else [item for item in compared if sees(item)]
                found += [item for item in seen if listing.matches(item, query)]
                # guard: list-search-slices
                await checkpoint()  # a description has up to 16,384 characters; a comparison of 200 of them takes 60 ms
            if len(items) < size:
                break
            after = listing.position_of(items[-1], order)
        return found[:limit]

    def position(item: T) -> str:
        return listing.position_of(item, order)

    return await read_page(cursors, tenant, listing.name, query, read=read_matching, key=position)


async def read_page(
    cursors: Cursors, tenant: TenantId, listing: str, query: PageQuery, *, read: Read[T], key: Callable[[T], str]
) -> tuple[Sequence[T], str | None]:
    """Return the requested page of a list, and the cursor of the next page; the cursor is None on the last page.

    Raises:
        InvalidCursor: the cursor was not issued for this tenant, list and filters.
    """
    if search := given_parameters(query):  # guard: cursor-of-its-search
        listing = f"{listing}?{orjson.dumps(search, option=orjson.OPT_SORT_KEYS).decode()}"
    tenant = tenant_of_cursors(tenant)
    after = None if query.cursor is None else _open(cursors, tenant, listing, query.cursor)
    found = await read(after=after, limit=query.limit + 1)
    if len(found) <= query.limit:
        return found, None
    return found[: query.limit], cursors.mint(tenant, FACE, listing, key(found[query.limit - 1]))


def _open(cursors: Cursors, tenant: TenantId, listing: str, cursor: str) -> str:
    try:
        return cursors.open(tenant, FACE, listing, cursor)
    except InvalidCursor as error:
        reason = "is not a `next_cursor` of this list with the same search, filters and sort; start without a cursor"
        raise InvalidCursor(error.message, faults=[Fault(pointer="?cursor", reason=reason)]) from None
