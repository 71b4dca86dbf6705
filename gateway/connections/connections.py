"""A connection from open to close: it holds a registry, and adopts a newer one whole.

Opening joins the roster before the snapshot is read, so that no change is missed between the two.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from gateway.catalog.snapshots import Snapshot, Snapshots
from gateway.domain.principals import Principal
from gateway.registry.build import Views
from gateway.registry.cursors import Cursors
from gateway.registry.registry import Registry

DEFAULT_PROFILE = "default"


class Connection:
    """One client attached to one tenant; a request takes `registry` once and uses it to its end."""

    __slots__ = ("_cursors", "_views", "principal", "profile", "registry")

    def __init__(self, principal: Principal, profile: str, views: Views, cursors: Cursors) -> None:
        self.principal = principal
        self.profile = profile
        self.registry: Registry | None = None
        self._views = views
        self._cursors = cursors

    def adopt(self, snapshot: Snapshot) -> None:
        """Show this snapshot from now on, if it is newer than what is shown."""
        if self.registry is None or snapshot.revision > self.registry.revision:
            self.registry = Registry(self.principal, self.profile, self._views.of(snapshot), self._cursors)


class Connections:
    """All connections of this replica."""

    def __init__(self, snapshots: Snapshots, views: Views, cursors: Cursors) -> None:
        self._snapshots = snapshots
        self._views = views
        self._cursors = cursors
        self._open: set[Connection] = set()

    @property
    def open_count(self) -> int:
        """How many connections are open now."""
        return len(self._open)

    @asynccontextmanager
    async def open(self, principal: Principal, profile: str = DEFAULT_PROFILE) -> AsyncGenerator[Registry]:
        """Attach a client for as long as the block runs, and show it the newest registry.

        Raises:
            NotFound: the tenant is gone.
            Unavailable: its catalog cannot be read now.
        """
        connection = Connection(principal, profile, self._views, self._cursors)
        self._open.add(connection)
        try:
            connection.adopt(await self._snapshots.latest(principal.tenant))
            if connection.registry is None:  # adopt always shows something to a new connection
                raise AssertionError
            yield connection.registry
        finally:
            self._open.discard(connection)
            connection.registry = None
