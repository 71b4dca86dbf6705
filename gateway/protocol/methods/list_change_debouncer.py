"""What of a catalog has changed for one client, gathered for a moment so that many changes are one notice."""

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

from gateway.connections.subscribers import Listener
from gateway.domain.primitives import Family
from gateway.registry.registry import Registry

DEBOUNCE_S: Final = 0.25

LISTS: Final = (Family.TOOL, Family.RESOURCE, Family.PROMPT)
"""The lists of which notices are given; a resource template is told of as a resource."""


class CatalogSubscriptions(Protocol):
    """Subscriptions to the catalog of one tenant, for a client that is shown a registry."""

    def subscribe(self, shown: Registry, listener: Listener) -> Callable[[], None]:
        """Notify the listener of newer registries; returns the function that ends the subscription."""
        ...

    def is_current(self, shown: Registry) -> bool:
        """True if no newer revision is known than the one that is shown."""
        ...

    @property
    def has_new_code(self) -> bool:
        """True if code was registered since this replica serves, which no revision covers."""
        ...


class ListChangeDebouncer:
    """The lists that changed since somebody was told; `tell` is called when there is something to tell."""

    __slots__ = ("_changed", "_pending", "_tell")

    def __init__(self, tell: Callable[[], None]) -> None:
        self._tell = tell
        self._changed: frozenset[Family] = frozenset()
        self._pending: asyncio.TimerHandle | None = None

    def note(self, before: Registry, after: Registry) -> None:
        """Something newer is shown from now on."""
        changed = [family for family in LISTS if not before.lists_the_same(after, family)]
        if changed:
            self.note_lists(*changed)

    def note_lists(self, *families: Family) -> None:
        """These lists may have changed."""
        self._changed |= set(families)
        if self._pending is None:
            self._pending = asyncio.get_running_loop().call_later(DEBOUNCE_S, self._ripe)

    def take(self) -> tuple[Family, ...]:
        """What there is to tell, once."""
        if self._pending is not None:
            return ()  # wait for what comes with it
        taken = tuple(family for family in LISTS if family in self._changed)
        self._changed = frozenset()
        return taken

    def close(self) -> None:
        """Nobody is there to be told any more."""
        if self._pending is not None:
            self._pending.cancel()
            self._pending = None

    def _ripe(self) -> None:
        self._pending = None
        self._tell()
