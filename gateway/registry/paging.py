"""Pages of primitives, sorted by name; each page is built once and shared by all clients of the profile."""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Generic, TypeVar

import anyio

from gateway.domain.json_text import decode_json
from gateway.domain.primitives import Primitive
from gateway.domain.tools import Tool

Item = TypeVar("Item", bound=Tool | Primitive)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageLimits:
    """Limits of one page of a list. Seven of thirty clients read the first page alone, so it is large."""

    items: int = 1000
    size: int = 1000 * 4096
    """Bytes of the stored definitions; the first one is always included."""

    @classmethod
    def of(cls, items: int) -> "PageLimits":
        """Return the limits of pages with this many items, and 4 KiB for each."""
        return cls(items=items, size=items * 4096)


DEFAULT_LIMITS = PageLimits()


class ListPage(Generic[Item]):
    """One page of a list; `next_cursor` is None on the last page. It is shared, so callers must not change it.

    `rendered` caches the rendered page by protocol revision. `rendering` is held while a page is rendered.
    """

    __slots__ = ("_listed", "items", "next_cursor", "rendered", "rendering")

    def __init__(
        self, items: Sequence[Item], next_cursor: str | None, listed: Callable[[Item], dict[str, Any]] | None = None
    ) -> None:
        self.items: Sequence[Item] = items
        self.next_cursor = next_cursor
        self.rendered: dict[str, bytes] = {}
        self.rendering = anyio.Lock()
        self._listed = listed

    @property
    def size(self) -> int:
        """Bytes of the stored definitions."""
        return sum(len(item.definition) for item in self.items)

    def objects(self, items: Sequence[Item]) -> list[dict[str, Any]]:
        """The definitions of some items of the page as clients receive them."""
        if self._listed is not None:
            return [self._listed(item) for item in items]
        return [decode_json(item.definition) for item in items]


class PagedList(Generic[Item]):
    """The primitives of one family, sorted by name."""

    def __init__(
        self,
        items: Sequence[Item],
        listed: Callable[[Item], dict[str, Any]] | None = None,
        *,
        limits: PageLimits = DEFAULT_LIMITS,
    ) -> None:
        """`listed` returns the definition of an item as clients receive it; without it, they receive the stored one."""
        self.items: Sequence[Item] = items
        self.by_name: Mapping[str, Item] = {item.name: item for item in items}
        self._listed = listed
        self._limits = limits
        self._names: Sequence[str] = [item.name for item in items]
        self._pages: dict[int, ListPage[Item]] = {}

    def page(self, last: str | None, mint: Callable[[str], str]) -> ListPage[Item]:
        """Return the page that starts after the name `last`; `mint` makes the cursor of the next page."""
        start = 0 if last is None else bisect_right(self._names, last)
        found = self._pages.get(start)
        if found is None:
            shown = self.items[start : start + self._limits.items]
            sizes = accumulate(len(item.definition) for item in shown)
            shown = shown[: max(1, sum(size <= self._limits.size for size in sizes))]  # guard: list-page-bytes
            more = len(self.items) > start + len(shown)
            found = self._pages[start] = ListPage(shown, mint(shown[-1].name) if more else None, self._listed)
        return found
