"""`subscriptions/listen` (2026-07-28): what has changed for a client that wants to know.

What it is told comes from the tenant's own catalog and events and never from another tenant's. A resource that the
client may not read is dropped like one that does not exist. There is no replay, and what changes several times before
it was told is told once: whoever listens lists and reads anew. Updates are gathered for a moment and told together. How
it is told is `gateway.protocol.stateless.subscription_stream`.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final

import anyio.to_thread
from mcp_types import SubscriptionFilter

from gateway.domain.identifiers import KeyId, TenantId
from gateway.domain.primitives import Family
from gateway.errors import Unavailable
from gateway.protocol.methods.capabilities import has_resources
from gateway.protocol.methods.list_change_debouncer import LISTS, CatalogSubscriptions, ListChangeDebouncer
from gateway.redis.limits.stream_limiter import StreamLimiter
from gateway.registry.registry import Registry

MAX_AGE_S: Final = 3600.0
"""A client that still wants to listen after this long listens anew."""

MAX_URIS: Final = 1000
GATHER_S: Final = 0.02
_RETRY_S = 1.0
_AT_ONCE = 16

_Held = tuple[str, asyncio.TimerHandle, Callable[[], None]]
"""What a client that listens holds: its place, its end, and how it stops following the catalog."""

Change = Family | str
"""A list that has changed, or the URI of a resource that has."""


class Subscription:
    """One client that listens; woken when there is something to tell."""

    __slots__ = (
        "_catalogs",
        "_changes",
        "_doubted",
        "_lists",
        "_pending",
        "_registry",
        "_uris",
        "is_over",
        "key",
        "tenant",
        "wake",
    )

    def __init__(self, registry: Registry, catalogs: CatalogSubscriptions, asked: SubscriptionFilter) -> None:
        self.tenant = registry.principal.tenant
        self.key = registry.principal.key
        self.is_over = False
        self.wake: Callable[[], None] = _nobody
        self._registry = registry
        self._catalogs = catalogs
        self._uris = _uris_of(registry, asked)
        self._lists = _lists_of(registry, asked)
        self._changes = ListChangeDebouncer(self._note_lists)
        self._pending: dict[Change, None] = {}
        self._doubted: dict[str, None] = {}

    @property
    def served(self) -> SubscriptionFilter:
        """What the client is told of; what it did not ask for, or cannot have, is left out."""
        return SubscriptionFilter(
            tools_list_changed=Family.TOOL in self._lists or None,
            prompts_list_changed=Family.PROMPT in self._lists or None,
            resources_list_changed=Family.RESOURCE in self._lists or None,
            resource_subscriptions=list(self._uris) or None,
        )

    @property
    def uris(self) -> Iterable[str]:
        """The resources of which it is told."""
        return self._uris

    def drain(self) -> Sequence[Change]:
        """What there is to tell, once."""
        taken = tuple(self._pending)
        self._pending.clear()
        return taken

    def end(self) -> None:
        """Nothing more will be told."""
        self.is_over = True
        self.wake()

    def notify(self, *uris: str) -> None:
        """Resources are not what they were: of interest to whom they were promised and who still may read them.

        Whether he may is not asked of a catalog of which something newer is known to be on its way.
        """
        promised = [uri for uri in uris if uri in self._uris]
        if not promised:
            return
        if not self._catalogs.is_current(self._registry):
            self._doubted.update(dict.fromkeys(promised))
            return
        self._pending.update((uri, None) for uri in promised if self._registry.can_read(uri))
        if self._pending:
            self.wake()

    def notify_all(self) -> None:
        """Anything may not be what it was."""
        self._changes.note_lists(*LISTS)
        self.notify(*self._uris)

    def on_catalog_change(self, before: Registry, after: Registry | None) -> None:
        """What the client is shown has changed; None when nothing is any more."""
        if after is None:
            self.end()
            return
        self._registry = after
        self._changes.note(before, after)
        waiting = (change for change in self._pending if isinstance(change, Family) or after.can_read(change))
        self._pending = dict.fromkeys(waiting)
        doubted, self._doubted = self._doubted, {}
        self.notify(*doubted)

    def close(self) -> None:
        """Nobody listens any more."""
        self._changes.close()
        self.wake = _nobody

    def _note_lists(self) -> None:
        self._pending.update((family, None) for family in self._changes.take() if family in self._lists)
        if self._pending:
            self.wake()


class SubscriptionHub:
    """The listening clients of this replica; counted with those of all others."""

    def __init__(self, catalogs: CatalogSubscriptions, places: StreamLimiter) -> None:
        self._catalogs = catalogs
        self._places = places
        self._open: dict[TenantId, dict[Subscription, _Held]] = {}
        self._gathered: dict[TenantId, dict[str, None]] = {}
        self._is_closing = False

    def __len__(self) -> int:
        """How many there are."""
        return sum(len(subscriptions) for subscriptions in self._open.values())

    async def open(self, registry: Registry, asked: SubscriptionFilter) -> Subscription:
        """One client that listens until it is closed; what changes from now on is told.

        Raises:
            LimitExceeded: the tenant or the key has as many streams as it may have.
            Unavailable: this replica is about to end.
        """
        if self._is_closing:
            raise Unavailable("this replica is about to end", retry_after_s=_RETRY_S)
        principal = registry.principal
        many = len(asked.resource_subscriptions or ()) > _AT_ONCE  # each may have to be held against every template
        make = partial(Subscription, registry, self._catalogs, asked)
        subscription = await anyio.to_thread.run_sync(make) if many else make()
        place = await self._places.acquire(
            principal.tenant, principal.key, registry.view.snapshot.policy.limits.streams
        )
        expiry = asyncio.get_running_loop().call_later(MAX_AGE_S, subscription.end)
        leave = self._catalogs.subscribe(registry, subscription.on_catalog_change)
        self._open.setdefault(principal.tenant, {})[subscription] = (place, expiry, leave)
        if self._is_closing:  # begun while the place was taken
            subscription.end()
        return subscription

    async def close(self, subscription: Subscription) -> None:
        """Nobody listens any more."""
        tenant = subscription.tenant
        subscriptions = self._open[tenant]
        place, expiry, leave = subscriptions.pop(subscription)
        if not subscriptions:
            del self._open[tenant]
        expiry.cancel()
        leave()
        subscription.close()
        await self._places.release(tenant, subscription.key, place)

    def publish(self, tenant: TenantId, uri: str) -> None:
        """A resource of the tenant is not what it was."""
        if tenant not in self._open:
            return
        if tenant not in self._gathered:
            self._gathered[tenant] = {}
            asyncio.get_running_loop().call_later(GATHER_S, self._tell_gathered, tenant)
        self._gathered[tenant][uri] = None

    async def followed(self, tenant: TenantId) -> AsyncGenerator[Sequence[str]]:
        """The resources of which clients of the tenant are told here, those of some clients at a time."""
        subscriptions = tuple(self._open.get(tenant, ()))
        for place in range(0, len(subscriptions), _AT_ONCE):
            yield [uri for subscription in subscriptions[place : place + _AT_ONCE] for uri in subscription.uris]

    async def publish_now(self, tenant: TenantId, uri: str) -> None:
        """The same as `tell`, for a caller that waits elsewhere."""
        self.publish(tenant, uri)

    def recheck_all(self) -> None:
        """Events may have been lost: whoever listens looks at everything anew."""
        for subscription in self._all():
            subscription.notify_all()

    def end(self, tenant: TenantId, key: KeyId) -> None:
        """End those of a key that was revoked or changed: whoever still may listens anew, with its credential."""
        for subscription in tuple(self._open.get(tenant, ())):
            if subscription.key == key:
                subscription.end()

    def end_all(self) -> None:
        """End them all, each with its final result; none is opened any more."""
        self._is_closing = True
        for tenant in tuple(self._gathered):
            self._tell_gathered(tenant)
        for subscription in self._all():
            subscription.end()

    def _tell_gathered(self, tenant: TenantId) -> None:
        uris = self._gathered.pop(tenant, ())
        for subscription in tuple(self._open.get(tenant, ())):
            subscription.notify(*uris)

    def _all(self) -> Sequence[Subscription]:
        return [subscription for subscriptions in self._open.values() for subscription in subscriptions]


def _uris_of(registry: Registry, asked: SubscriptionFilter) -> Mapping[str, None]:
    """The resources among those asked for that may be read, each once and in their order."""
    uris = list(dict.fromkeys(asked.resource_subscriptions or ()))[:MAX_URIS] if has_resources(registry) else ()
    return {uri: None for uri in uris if registry.can_read(uri)}


def _lists_of(registry: Registry, asked: SubscriptionFilter) -> Sequence[Family]:
    """The lists among those asked for that were declared."""
    said = {
        Family.TOOL: asked.tools_list_changed,
        Family.RESOURCE: asked.resources_list_changed and has_resources(registry),
        Family.PROMPT: asked.prompts_list_changed and registry.has(Family.PROMPT),
    }
    return tuple(family for family, is_wanted in said.items() if is_wanted)


def _nobody() -> None:
    """Nobody is to be woken."""
