"""Pages of primitives, sorted by name; each page is built once and shared by all clients of the profile."""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Any, Generic, TypeVar

import msgspec

from gateway.domain.primitives import Primitive
from gateway.domain.tools import Tool

PAGE = 100
PAGE_BYTES = 256 * 1024
"""Limit on the bytes of one page's definitions; the first definition is always included."""

Item = TypeVar("Item", bound=Tool | Primitive)


class ListPage(Generic[Item]):
    """One page of a list; `next_cursor` is None on the last page. It is shared, so callers must not change it.

    `rendered` caches the rendered page by protocol revision.
    """

    __slots__ = ("_objects", "items", "next_cursor", "rendered")

    def __init__(self, items: Sequence[Item], next_cursor: str | None) -> None:
        self.items: Sequence[Item] = items
        self.next_cursor = next_cursor
        self.rendered: dict[str, bytes] = {}
        self._objects: list[dict[str, Any]] | None = None

    @property
    def objects(self) -> list[dict[str, Any]]:
        """The complete definitions as decoded JSON objects."""
        if self._objects is None:
            self._objects = [msgspec.json.decode(item.definition) for item in self.items]
        return self._objects


class PagedList(Generic[Item]):
    """The primitives of one family, sorted by name."""

    def __init__(self, items: Sequence[Item], listed_form: Callable[[Item], Item] | None = None) -> None:
        """`listed_form` returns the form of an item that pages contain; without it, pages contain the items."""
        self.items: Sequence[Item] = items
        self.listed_form = listed_form
        self.by_name: Mapping[str, Item] = {item.name: item for item in items}
        self._names: Sequence[str] = [item.name for item in items]
        self._pages: dict[int, ListPage[Item]] = {}

    def page(self, last: str | None, mint: Callable[[str], str]) -> ListPage[Item]:
        """Return the page that starts after the name `last`; `mint` makes the cursor of the next page."""
        start = 0 if last is None else bisect_right(self._names, last)
        found = self._pages.get(start)
        if found is None:
            shown = self.items[start : start + PAGE]
            if self.listed_form is not None:
                shown = [self.listed_form(item) for item in shown]
            sizes = accumulate(len(item.definition) for item in shown)
            shown = shown[: max(1, sum(size <= PAGE_BYTES for size in sizes))]  # guard: list-page-bytes
            more = len(self.items) > start + len(shown)
            found = self._pages[start] = ListPage(shown, mint(shown[-1].name) if more else None)
        return found
