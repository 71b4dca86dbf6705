"""Lists in parts: where a part begins, and the cursor of the next."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

from gateway.admin.schemas import PageQuery
from gateway.domain.identifiers import TenantId
from gateway.errors import Fault, InvalidCursor
from gateway.registry.cursors import Cursors

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

_FACE = "admin"


class Read(Protocol[T_co]):
    """What reads at most `limit` items that follow the key `after`."""

    def __call__(self, *, after: str | None, limit: int) -> Awaitable[Sequence[T_co]]:
        """The items in order of their keys."""
        ...


async def read_page(
    cursors: Cursors, tenant: TenantId, listing: str, query: PageQuery, *, read: Read[T], key: Callable[[T], str]
) -> tuple[Sequence[T], str | None]:
    """The part of a list that the query asks for, and the cursor of the next; None on the last.

    Raises:
        InvalidCursor: the query's cursor was not issued for this tenant and list.
    """
    after = None if query.cursor is None else _open(cursors, tenant, listing, query.cursor)
    found = await read(after=after, limit=query.limit + 1)
    if len(found) <= query.limit:
        return found, None
    return found[: query.limit], cursors.mint(tenant, _FACE, listing, key(found[query.limit - 1]))


def _open(cursors: Cursors, tenant: TenantId, listing: str, cursor: str) -> str:
    try:
        return cursors.open(tenant, _FACE, listing, cursor)
    except InvalidCursor as error:
        fault = Fault(pointer="?cursor", reason="is no `next_cursor` of this list")
        raise InvalidCursor(error.message, faults=[fault]) from None
