"""Clients attached to tenants, from open to close, and how what they see follows the catalog.

A request takes its registry once and keeps it to its end; whoever stays longer subscribes, and adopts each newer
snapshot whole. Whatever says that a catalog moved is a hint: the revision decides, and because hints get lost the
revisions that are followed are compared with the database every `repair_s` seconds, and at once after a gap.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Self

import anyio
import structlog
from anyio.abc import TaskGroup

from gateway.catalog.snapshots import Snapshots
from gateway.connections.roster import Follower, Listener, Room, Roster
from gateway.domain.identifiers import TenantId
from gateway.domain.principals import Principal
from gateway.errors import NotFound, Unavailable
from gateway.registry.build import Views
from gateway.registry.cursors import Cursors
from gateway.registry.registry import Registry

log = structlog.get_logger(__name__)

DEFAULT_PROFILE = "default"
REPAIR_S = 15.0


class Connections:
    """All connections of this replica; open it with `async with`, once, while the store and the bus are open."""

    def __init__(self, snapshots: Snapshots, views: Views, cursors: Cursors, *, repair_s: float = REPAIR_S) -> None:
        self._snapshots = snapshots
        self._views = views
        self._cursors = cursors
        self._repair_s = repair_s
        self._roster = Roster()
        self._open_count = 0
        self._doubt = anyio.Event()
        self._tasks: TaskGroup | None = None

    async def __aenter__(self) -> Self:
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        self._tasks.start_soon(self._repair)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        tasks, self._tasks = self._tasks, None
        if tasks is not None:
            tasks.cancel_scope.cancel()
            await tasks.__aexit__(None, None, None)

    @property
    def open_count(self) -> int:
        """How many connections are open now."""
        return self._open_count

    @property
    def follower_count(self) -> int:
        """How many of them follow their tenant's catalog."""
        return len(self._roster)

    @asynccontextmanager
    async def open(self, principal: Principal, profile: str = DEFAULT_PROFILE) -> AsyncGenerator[Registry]:
        """Attach a client for as long as the block runs, and show it the newest registry.

        Raises:
            NotFound: the tenant is gone.
            Unavailable: its catalog cannot be read now.
        """
        self._open_count += 1
        try:
            snapshot = await self._snapshots.latest(principal.tenant)
            self.refresh(principal.tenant, snapshot.revision)  # what a request finds out, followers need not wait for
            yield Registry(principal, profile, self._views.of(snapshot), self._cursors)
        finally:
            self._open_count -= 1

    def subscribe(self, shown: Registry, listener: Listener) -> Callable[[], None]:
        """From now on follow the catalog behind a registry; the answer ends that, and may be called again.

        The listener is called with what was shown before and what is shown now, each time something newer is adopted,
        also when that was already there to be adopted; with None when the tenant is gone.
        """
        tenant = shown.principal.tenant
        leave = self._roster.join(tenant, Follower(shown, listener))
        self.refresh(tenant, self._snapshots.newest(tenant))
        return leave

    def refresh(self, tenant: TenantId, revision: int) -> None:
        """The tenant's catalog has reached this revision: load it once, and let every follower adopt it."""
        room = self._roster.find(tenant)
        if room is None:
            return
        room.wanted = max(room.wanted, revision)
        if room.is_behind and not room.is_refreshing and self._tasks is not None:
            room.is_refreshing = True
            self._tasks.start_soon(self._refresh, tenant, room)

    def forget(self, tenant: TenantId) -> None:
        """The tenant is gone: tell its followers and let them go."""
        room = self._roster.remove(tenant)
        if room is not None:
            for follower in tuple(room.followers.values()):
                follower.lose()

    def distrust(self) -> None:
        """Hints may have been lost: compare what is followed with the database now."""
        self._doubt.set()

    async def _refresh(self, tenant: TenantId, room: Room) -> None:
        try:
            while room.is_behind:
                snapshot = await self._snapshots.latest(tenant)
                room.show(self._views.of(snapshot))
                if room.is_behind:  # the database is away and an older snapshot goes on; the repair comes back to it
                    return
        except NotFound:
            self.forget(tenant)
        except Unavailable as error:
            log.warning("refresh_failed", tenant_id=tenant, reason=str(error))
        except Exception:
            log.exception("refresh_failed", tenant_id=tenant)
        finally:
            room.is_refreshing = False

    async def _repair(self) -> None:
        while True:
            with anyio.move_on_after(self._repair_s):
                await self._doubt.wait()
            self._doubt = anyio.Event()
            try:
                await self._compare()
            except Unavailable as error:
                log.warning("repair_failed", reason=str(error))
            except Exception:
                log.exception("repair_failed")

    async def _compare(self) -> None:
        """Ask the database how far every tenant is that somebody follows."""
        for tenant in self._roster:
            try:
                self.refresh(tenant, await self._snapshots.reread(tenant))
            except NotFound:
                self.forget(tenant)
