"""Subscriptions of `subscriptions/listen` (2026-07-28): the changes of which each client is notified.

The changes come only from the tenant's own catalog and events. A resource that the client may not read is treated like
one that does not exist. There is no replay. Several changes of the same list or resource become one notification,
because the client then lists or reads again. Updates of resources are collected for `GATHER_S`.
`gateway.protocol.stateless.subscription_stream` sends the notifications.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from functools import partial

import msgspec
from mcp_types import SubscriptionFilter

from gateway.domain.events import TaskChanged
from gateway.domain.fairness.thread_kinds import TEMPLATE_MATCHES
from gateway.domain.fairness.threads import run_in_thread
from gateway.domain.identifiers import TaskId, TenantId
from gateway.domain.primitives import Family
from gateway.domain.tenancy.principals import Principal
from gateway.errors import Unavailable
from gateway.protocol.methods.capabilities import has_resources
from gateway.protocol.methods.list_change_debouncer import LISTS, CatalogSubscriptions, ListChangeDebouncer
from gateway.protocol.stateless.limits import GATHER_S, MAX_AGE_S, MAX_URIS, STOPPING_RETRY_S
from gateway.redis.limits.stream_limiter import StreamLimiter
from gateway.registry.registry import Registry

_URIS_PER_BATCH = 16

_Held = tuple[str, asyncio.TimerHandle, Callable[[], None]]
"""The slot of a subscription, its expiry timer, and the function that ends its subscription to the catalog."""


class ChangedTask(msgspec.Struct, frozen=True):
    """A task of the client whose state has changed."""

    id: TaskId


Change = Family | str | ChangedTask
"""A changed list, the URI of an updated resource, or a task."""


class Subscription:
    """One client's subscription; `wake` is called when changes are pending or the subscription has ended."""

    __slots__ = (
        "_catalogs",
        "_changes",
        "_lists",
        "_pending",
        "_possibly_changed",
        "_tasks",
        "_uris",
        "is_over",
        "principal",
        "registry",
        "tenant",
        "wake",
    )

    def __init__(
        self,
        registry: Registry,
        catalogs: CatalogSubscriptions,
        filters: SubscriptionFilter,
        tasks: Iterable[TaskId] = (),
    ) -> None:
        self.tenant = registry.principal.tenant
        self.principal = registry.principal
        self.is_over = False
        self.wake: Callable[[], None] = _no_listener
        self.registry = registry
        self._catalogs = catalogs
        self._tasks = dict.fromkeys(tasks)
        self._uris = _uris_of(registry, filters)
        self._lists = _lists_of(registry, filters)
        self._changes = ListChangeDebouncer(self._note_lists)
        self._pending: dict[Change, None] = {}
        self._possibly_changed: dict[str, None] = {}

    @property
    def served(self) -> SubscriptionFilter:
        """The requested filter without undeclared lists and unreadable resources."""
        return SubscriptionFilter(
            tools_list_changed=Family.TOOL in self._lists or None,
            prompts_list_changed=Family.PROMPT in self._lists or None,
            resources_list_changed=Family.RESOURCE in self._lists or None,
            resource_subscriptions=list(self._uris) or None,
        )

    @property
    def uris(self) -> Iterable[str]:
        """The resources whose updates the client receives."""
        return self._uris

    @property
    def tasks(self) -> Sequence[TaskId]:
        """The tasks whose changes the client receives."""
        return tuple(self._tasks)

    def drain(self) -> Sequence[Change]:
        """Return the pending changes and clear them."""
        taken = tuple(self._pending)
        self._pending.clear()
        return taken

    def end(self) -> None:
        """End the subscription; pending changes are still sent."""
        self.is_over = True
        self.wake()

    def notify(self, *uris: str) -> None:
        """Record updates of the resources that the client subscribed to and may still read.

        While a newer catalog is known but not adopted, updates are stored and checked once it is adopted.
        """
        promised = [uri for uri in uris if uri in self._uris]
        if not promised:
            return
        if not self._catalogs.is_current(self.registry):
            self._possibly_changed.update(dict.fromkeys(promised))
            return
        # guard: listened-still-readable
        self._pending.update((uri, None) for uri in promised if self.registry.can_read(uri))
        if self._pending:
            self.wake()

    def notify_task(self, task: TaskId) -> None:
        """Record a change of a task, if the client named it."""
        if task in self._tasks:
            self._pending[ChangedTask(task)] = None
            self.wake()

    def notify_all(self) -> None:
        """Record every list, resource and task as changed, because events may have been lost."""
        self._changes.note_lists(*LISTS)
        self.notify(*self._uris)
        for task in self._tasks:
            self.notify_task(task)

    def on_catalog_change(self, before: Registry, after: Registry | None) -> None:
        """Adopt a newer registry and record its changed lists; None ends the subscription."""
        if after is None:
            self.end()
            return
        self.registry = after
        self._changes.note(before, after)
        # guard: waiting-update-still-readable
        waiting = (change for change in self._pending if not isinstance(change, str) or after.can_read(change))
        self._pending = dict.fromkeys(waiting)
        possibly_changed, self._possibly_changed = self._possibly_changed, {}
        self.notify(*possibly_changed)

    def close(self) -> None:
        """Stop the timer and disable `wake`, because the client has disconnected."""
        self._changes.close()
        self.wake = _no_listener

    def _note_lists(self) -> None:
        self._pending.update((family, None) for family in self._changes.take() if family in self._lists)
        if self._pending:
            self.wake()


class SubscriptionHub:
    """The subscriptions of this replica; each takes a slot that is counted across all replicas."""

    def __init__(self, catalogs: CatalogSubscriptions, limiter: StreamLimiter) -> None:
        self._catalogs = catalogs
        self._limiter = limiter
        self._open: dict[TenantId, dict[Subscription, _Held]] = {}
        self._gathered: dict[TenantId, dict[str, None]] = {}
        self._is_closing = False

    def __len__(self) -> int:
        """Number of open subscriptions."""
        return sum(len(subscriptions) for subscriptions in self._open.values())

    async def open(self, registry: Registry, filters: SubscriptionFilter, tasks: Sequence[TaskId] = ()) -> Subscription:
        """Open a subscription until `close`; changes are recorded from now on. `tasks` are tasks of the client.

        Raises:
            LimitExceeded: the tenant or the key has reached its cap of open streams.
            Unavailable: this replica is shutting down.
        """
        if self._is_closing:
            raise Unavailable("this replica is shutting down", retry_after_s=STOPPING_RETRY_S)
        principal = registry.principal
        # each URI may have to be matched with every template
        many = len(filters.resource_subscriptions or ()) > _URIS_PER_BATCH
        make = partial(Subscription, registry, self._catalogs, filters, tasks)
        subscription = await run_in_thread(TEMPLATE_MATCHES, principal.tenant, make) if many else make()
        slot = await self._limiter.acquire(
            principal.tenant, principal.key, registry.view.snapshot.policy.limits.streams
        )
        expiry = asyncio.get_running_loop().call_later(MAX_AGE_S, subscription.end)
        leave = self._catalogs.subscribe(registry, subscription.on_catalog_change)
        self._open.setdefault(principal.tenant, {})[subscription] = (slot, expiry, leave)
        for task in tasks:  # report the state now: a change since the id was checked has no event
            subscription.notify_task(task)
        if self._is_closing:  # `end_all` was called concurrently
            subscription.end()
        return subscription

    async def close(self, subscription: Subscription) -> None:
        """Close a subscription and release its slot."""
        tenant = subscription.tenant
        subscriptions = self._open[tenant]
        slot, expiry, leave = subscriptions.pop(subscription)
        if not subscriptions:
            del self._open[tenant]
        expiry.cancel()
        leave()
        subscription.close()
        await self._limiter.release(tenant, subscription.principal.key, slot)

    def publish(self, tenant: TenantId, uri: str) -> None:
        """Notify the tenant's subscriptions of an updated resource, after `GATHER_S`."""
        if tenant not in self._open:
            return
        if tenant not in self._gathered:
            self._gathered[tenant] = {}
            asyncio.get_running_loop().call_later(GATHER_S, self._publish_gathered, tenant)
        self._gathered[tenant][uri] = None

    async def followed(self, tenant: TenantId) -> AsyncGenerator[Sequence[str]]:
        """Yield the resources that the tenant's clients follow at this replica, in batches of 16 subscriptions."""
        subscriptions = tuple(self._open.get(tenant, ()))
        for start in range(0, len(subscriptions), _URIS_PER_BATCH):
            yield [uri for subscription in subscriptions[start : start + _URIS_PER_BATCH] for uri in subscription.uris]

    async def publish_now(self, tenant: TenantId, uri: str) -> None:
        """Notify like `publish`, but asynchronously, for callers that expect a coroutine."""
        self.publish(tenant, uri)

    def publish_task(self, event: TaskChanged) -> None:
        """Notify the tenant's subscriptions that name a task of its change."""
        for subscription in tuple(self._open.get(event.tenant, ())):
            subscription.notify_task(event.task)

    def recheck_all(self) -> None:
        """Notify all subscriptions of all their lists and resources, because events may have been lost."""
        for subscription in self._all():
            subscription.notify_all()

    def end(self, tenant: TenantId, is_over: Callable[[Principal], bool]) -> None:
        """End the subscriptions of some principals; a client whose credential is valid subscribes again."""
        for subscription in tuple(self._open.get(tenant, ())):
            if is_over(subscription.principal):
                subscription.end()

    def end_all(self) -> None:
        """End all subscriptions, each with its final result, and refuse new ones."""
        self._is_closing = True
        for tenant in tuple(self._gathered):
            self._publish_gathered(tenant)
        for subscription in self._all():
            subscription.end()

    def _publish_gathered(self, tenant: TenantId) -> None:
        uris = self._gathered.pop(tenant, ())
        for subscription in tuple(self._open.get(tenant, ())):
            subscription.notify(*uris)

    def _all(self) -> Sequence[Subscription]:
        return [subscription for subscriptions in self._open.values() for subscription in subscriptions]


def _uris_of(registry: Registry, filters: SubscriptionFilter) -> Mapping[str, None]:
    """The readable ones of the first `MAX_URIS` requested resources, each once and in the requested order."""
    uris = list(dict.fromkeys(filters.resource_subscriptions or ()))[:MAX_URIS] if has_resources(registry) else ()
    return {uri: None for uri in uris if registry.can_read(uri)}  # guard: listen-readable


def _lists_of(registry: Registry, filters: SubscriptionFilter) -> Sequence[Family]:
    """The requested lists that were declared."""
    message = {
        Family.TOOL: filters.tools_list_changed,
        Family.RESOURCE: filters.resources_list_changed and has_resources(registry),
        Family.PROMPT: filters.prompts_list_changed and registry.has(Family.PROMPT),
    }
    return tuple(family for family, is_wanted in message.items() if is_wanted)


def _no_listener() -> None:
    """Do nothing: there is no client to wake."""
