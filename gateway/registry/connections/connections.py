"""Connections of clients to tenants; long-lived clients receive catalog changes even after a lost event.

A request uses one registry until its end. A long-lived client subscribes, and adopts each newer snapshot as a whole.
Events announce new revisions. Events can be lost, so the subscribers' revisions are compared with the database every
`recheck_s` seconds, and at once after a gap. The keys of subscribers are checked at each new revision, because every
change of a key creates a revision, and by the timer, which finds expired keys.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Self

import anyio
import structlog

from gateway.catalog.snapshots.snapshots import Snapshots
from gateway.domain.audit import RuleKind
from gateway.domain.fairness.task_supervisor import TaskSupervisor
from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.principals import Principal
from gateway.domain.tenancy.profiles import DEFAULT_PROFILE
from gateway.errors import DecidingRule, NotFound, Unavailable
from gateway.registry.connections.subscriber_index import Listener, Subscriber, SubscriberIndex, TenantSubscribers
from gateway.registry.cursors import Cursors
from gateway.registry.limits import MISSED_EVENT_RECHECK_S
from gateway.registry.registry import Registry
from gateway.registry.views import ViewCache

log = structlog.get_logger(__name__)

StillValid = Callable[[Principal], Awaitable[bool]]
"""Returns True if a principal's credential is valid and unchanged; raises Unavailable if it cannot be checked now."""


async def _always(_: Principal) -> bool:
    return True


def _no_listener(_: Principal) -> None:
    """The default of `dismissed`; it does nothing."""


class _Connection:
    """The context manager of `Connections.open`."""

    __slots__ = ("_all", "_principal", "_profile")

    def __init__(self, connections: "Connections", principal: Principal, profile: str) -> None:
        self._all = connections
        self._principal = principal
        self._profile = profile

    async def __aenter__(self) -> Registry:
        self._all.open_count += 1
        try:
            return await self._all.attach(self._principal, self._profile)
        except BaseException:
            self._all.open_count -= 1
            raise

    async def __aexit__(self, *_: object) -> None:
        self._all.open_count -= 1


class Connections:
    """All connections of this replica; open it with `async with`, once, while the store and the bus are open.

    `dismissed` is called with each principal whose subscribers were removed by a key check; a key can expire without an
    event.
    """

    def __init__(
        self,
        snapshots: Snapshots,
        views: ViewCache,
        cursors: Cursors,
        *,
        recheck_s: float = MISSED_EVENT_RECHECK_S,
        still_valid: StillValid = _always,
        dismissed: Callable[[Principal], None] = _no_listener,
    ) -> None:
        self._snapshots = snapshots
        self._views = views
        self._cursors = cursors
        self._recheck_s = recheck_s
        self._still_valid = still_valid
        self._subscribers = SubscriberIndex()
        self.open_count = 0
        """Number of connections that are open now."""
        self._comparison_due = anyio.Event()
        self._tasks = TaskSupervisor()
        self._dismissed = dismissed

    @property
    def failing(self) -> Sequence[str]:
        """Names of its loops that fail again and again."""
        return self._tasks.failing

    async def __aenter__(self) -> Self:
        self._tasks.open(self._recheck_periodically)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._tasks.close()

    @property
    def subscriber_count(self) -> int:
        """Number of connections that follow their tenant's catalog."""
        return len(self._subscribers)

    def open(self, principal: Principal, profile: str = DEFAULT_PROFILE) -> AbstractAsyncContextManager[Registry, None]:
        """Attach a client while the block runs, and return its current registry.

        Raises:
            NotFound: on entering: the tenant no longer exists, or has no such profile.
            Unavailable: on entering: the tenant's catalog cannot be read now.
        """
        return _Connection(self, principal, profile)

    async def attach(self, principal: Principal, profile: str = DEFAULT_PROFILE) -> Registry:
        """Return the current registry, without counting a connection; raises like `open`."""
        snapshots, tenant = self._snapshots, principal.tenant
        snapshot = snapshots.current(tenant) or await snapshots.latest(tenant)
        self.refresh(tenant, snapshot.revision)  # subscribers adopt a revision as soon as a request finds it
        view = self._views.of(snapshot)
        if not view.has_profile(profile):
            words = "the tenant has no such profile"
            raise NotFound("not found", rule=DecidingRule(RuleKind.PROFILE, profile, words))
        return Registry(principal, profile, view, self._cursors)

    def subscribe(self, shown: Registry, listener: Listener) -> Callable[[], None]:
        """Follow the catalog of the registry's tenant; the returned function unsubscribes (idempotent).

        The listener is called with the previous and the new registry each time the subscriber adopts a newer registry,
        even one that already exists at the call. The new registry is None if the tenant was removed or the principal's
        key is no longer valid.
        """
        tenant = shown.principal.tenant
        leave = self._subscribers.join(tenant, Subscriber(shown, listener))
        self.refresh(tenant, self._snapshots.newest(tenant))
        return leave

    def is_current(self, shown: Registry) -> bool:
        """True if no snapshot with a newer revision or code generation than the registry's is known."""
        snapshots, snapshot = self._snapshots, shown.view.snapshot
        return snapshot.revision >= snapshots.newest(snapshot.tenant) and snapshot.code >= snapshots.generation

    @property
    def has_new_code(self) -> bool:
        """True if code was registered after this replica began to serve; no revision covers such a change."""
        return self._snapshots.has_new_code

    def refresh(self, tenant: TenantId, revision: int) -> None:
        """Load the tenant's catalog once, in a background task, if a subscriber has an older revision than this one."""
        subscribers = self._subscribers.find(tenant)
        if subscribers is None:
            return
        subscribers.wanted = max(subscribers.wanted, revision)
        # code may have been registered before the entry existed
        subscribers.code = max(subscribers.code, self._snapshots.generation)
        self._update_subscribers(tenant, subscribers)

    def renew(self, code: int) -> None:
        """Make every subscriber of every tenant adopt this generation of the Python primitives."""
        for tenant in self._subscribers:
            subscribers = self._subscribers.find(tenant)
            if subscribers is not None:
                subscribers.code = max(subscribers.code, code)
                self._update_subscribers(tenant, subscribers)

    def forget(self, tenant: TenantId) -> None:
        """Notify and remove the subscribers of a removed tenant."""
        subscribers = self._subscribers.remove(tenant)
        if subscribers is not None:
            for subscriber in tuple(subscribers.by_token.values()):
                subscriber.end()

    def recheck_all(self) -> None:
        """Compare the followed revisions with the database now, because events may have been lost."""
        self._comparison_due.set()

    def _update_subscribers(self, tenant: TenantId, subscribers: TenantSubscribers) -> None:
        if subscribers.is_behind and not subscribers.is_refreshing and self._tasks.is_open:
            subscribers.is_refreshing = True
            self._tasks.spawn(self._refresh, tenant, subscribers)

    async def _refresh(self, tenant: TenantId, subscribers: TenantSubscribers) -> None:
        try:
            while subscribers.is_behind:
                wanted, code = subscribers.wanted, subscribers.code
                snapshot = await self._snapshots.latest(tenant)
                subscribers.show(self._views.of(snapshot))
                # the database is unavailable and an older snapshot remains in use; the recheck retries
                is_stuck = snapshot.revision < wanted or snapshot.code < code
                await self._drop_invalid(tenant, subscribers)
                if is_stuck:
                    return
        except NotFound:
            self.forget(tenant)
        except Unavailable as error:
            log.warning("refresh_failed", tenant_id=tenant, reason=str(error))
        except Exception:
            log.exception("refresh_failed", tenant_id=tenant)
        finally:
            subscribers.is_refreshing = False

    async def _drop_invalid(self, tenant: TenantId, subscribers: TenantSubscribers) -> None:
        """Remove the subscribers whose credential is no longer valid."""
        for principal in subscribers.principals:
            try:
                is_valid = await self._still_valid(principal)
            except Unavailable as error:  # the timer retries
                log.warning("examination_failed", tenant_id=tenant, reason=str(error))
                return
            if not is_valid:
                log.info("follower_dismissed", tenant_id=tenant, principal=principal.name)
                subscribers.drop(principal)
                self._dismissed(principal)
        self._subscribers.remove_if_empty(tenant, subscribers)

    async def _recheck_periodically(self) -> None:
        while True:
            with anyio.move_on_after(self._recheck_s):
                await self._comparison_due.wait()
            self._comparison_due = anyio.Event()
            try:
                await self._compare()
            except Unavailable as error:
                log.warning("recheck_failed", reason=str(error))
            except Exception:
                log.exception("recheck_failed")

    async def _compare(self) -> None:
        """Compare every followed tenant with the database, and check the credentials of its subscribers."""
        for tenant in self._subscribers:
            try:
                self.refresh(tenant, await self._snapshots.reload_revision(tenant))
            except NotFound:
                self.forget(tenant)
            subscribers = self._subscribers.find(tenant)
            if subscribers is not None:
                await self._drop_invalid(tenant, subscribers)
