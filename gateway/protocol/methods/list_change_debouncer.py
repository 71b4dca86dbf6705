"""Debounce of list changes for one client; changes of a list within `DEBOUNCE_S` become one notification."""

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

from gateway.domain.primitives import Family
from gateway.protocol.methods.limits import DEBOUNCE_S
from gateway.registry.connections.subscriber_index import Listener
from gateway.registry.registry import Registry

LISTS: Final = (Family.TOOL, Family.RESOURCE, Family.PROMPT)
"""The lists with change notifications; a resource template counts as a resource."""


class CatalogSubscriptions(Protocol):
    """Subscriptions to tenants' catalogs (`gateway.registry.connections.connections.Connections`)."""

    def subscribe(self, shown: Registry, listener: Listener) -> Callable[[], None]:
        """Notify the listener of newer registries; returns the function that ends the subscription."""
        ...

    def is_current(self, shown: Registry) -> bool:
        """True if no revision or code generation is known that is newer than the registry's."""
        ...

    @property
    def has_new_code(self) -> bool:
        """True if code was registered after this replica began to serve; no revision covers such a change."""
        ...


class ListChangeDebouncer:
    """The lists that changed since the last `take`; `notify` is called when `take` has something to return."""

    __slots__ = ("_changed", "_notify", "_pending")

    def __init__(self, notify: Callable[[], None]) -> None:
        self._notify = notify
        self._changed: frozenset[Family] = frozenset()
        self._pending: asyncio.TimerHandle | None = None

    def note(self, before: Registry, after: Registry) -> None:
        """Record the lists that differ between two registries."""
        changed = [family for family in LISTS if not before.lists_the_same(after, family)]
        if changed:
            self.note_lists(*changed)

    def note_lists(self, *families: Family) -> None:
        """Record lists that may have changed, and start the timer."""
        self._changed |= set(families)
        if self._pending is None:
            self._pending = asyncio.get_running_loop().call_later(DEBOUNCE_S, self._on_timer)

    def take(self) -> tuple[Family, ...]:
        """Return the recorded lists and clear them; empty while the timer runs."""
        if self._pending is not None:
            return ()  # more changes may follow before the timer ends
        taken = tuple(family for family in LISTS if family in self._changed)
        self._changed = frozenset()
        return taken

    def close(self) -> None:
        """Stop the timer, because the client has disconnected."""
        if self._pending is not None:
            self._pending.cancel()
            self._pending = None

    def _on_timer(self) -> None:
        self._pending = None
        self._notify()
