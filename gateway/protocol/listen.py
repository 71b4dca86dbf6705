"""`subscriptions/listen` (2026-07-28): the streams of one tenant told that its list of tools has changed.

The SDK's handler speaks the protocol (acknowledgement first, subscription ids, graceful end, slow readers cut); what
it is told comes from the tenant's connections and never from another tenant's. There is no replay: whoever listens
anew lists anew. Resources and prompts have no notices yet, so they are not acknowledged.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from mcp.server.context import HandlerResult, ServerRequestContext
from mcp.server.subscriptions import ListenHandler, ServerEvent, ToolsListChanged
from mcp_types import SubscriptionFilter, SubscriptionsListenRequestParams

from gateway.connections.roster import Listener
from gateway.domain.identifiers import KeyId, TenantId
from gateway.errors import LimitExceeded
from gateway.protocol.current import CURRENT
from gateway.registry.registry import Registry

DEBOUNCE_S = 0.25
_MAX_BUFFERED = 64
_RETRY_S = 30.0

Subscribe = Callable[[Registry, Listener], Callable[[], None]]
"""How the catalog behind a registry is followed; returns how to stop."""


class Listens:
    """The listen streams of this replica, key by key."""

    def __init__(self, subscribe: Subscribe) -> None:
        self._subscribe = subscribe
        self._rooms: dict[KeyId, _Room] = {}

    async def serve(
        self, ctx: ServerRequestContext[Any, Any], params: SubscriptionsListenRequestParams
    ) -> HandlerResult:
        """One stream, from its acknowledgement to its end.

        Raises:
            LimitExceeded: the tenant has as many streams as it may have.
        """
        registry = CURRENT.get().registry
        key, limit = registry.principal.key, registry.view.snapshot.policy.limits.streams
        if self._count(registry.principal.tenant) >= limit:
            raise LimitExceeded(f"the tenant has {limit} open streams, the most it may", retry_after_s=_RETRY_S)
        room = self._rooms.get(key)
        if room is None:
            room = self._rooms[key] = _Room(registry, self._subscribe)
        room.streams += 1
        try:
            return await room.handler(ctx, params.model_copy(update={"notifications": _served(params.notifications)}))
        finally:
            room.streams -= 1
            if not room.streams and self._rooms.get(key) is room:
                del self._rooms[key]

    def end(self, key: KeyId) -> None:
        """End the streams of a key that was revoked or changed: whoever still may listens anew, with its credential."""
        room = self._rooms.pop(key, None)
        if room is not None:
            room.handler.close()

    def close(self) -> None:
        """End every stream with its final result."""
        for room in self._rooms.values():
            room.handler.close()

    def _count(self, tenant: TenantId) -> int:
        return sum(room.streams for room in self._rooms.values() if room.tenant == tenant)


class _Room:
    """One key's streams (`mcp.server.subscriptions.SubscriptionBus`); it hears of moves while anybody listens."""

    def __init__(self, registry: Registry, subscribe: Subscribe) -> None:
        self.tenant = registry.principal.tenant
        self.streams = 0
        self.handler = ListenHandler(self, max_buffered_events=_MAX_BUFFERED, max_subscriptions=1_000_000)
        self._registry = registry
        self._subscribe = subscribe
        self._listeners: dict[object, Callable[[ServerEvent], None]] = {}
        self._leave: Callable[[], None] | None = None
        self._pending: asyncio.TimerHandle | None = None

    async def publish(self, event: ServerEvent) -> None:
        """Tell every stream of the key."""
        self._tell(event)

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        """Tell this listener too; the first one starts the hearing, the last one ends it."""
        token = object()
        self._listeners[token] = listener
        if self._leave is None:
            self._leave = self._subscribe(self._registry, self._hear)

        def unsubscribe() -> None:
            self._listeners.pop(token, None)
            if not self._listeners:
                self._rest()

        return unsubscribe

    def _hear(self, before: Registry, after: Registry | None) -> None:
        """A list that changes many times in a moment is one notice; a tenant that is gone has no streams."""
        if after is None:
            self.handler.close()
        elif self._pending is None and not before.lists_the_same(after):
            self._pending = asyncio.get_running_loop().call_later(DEBOUNCE_S, self._notify)

    def _notify(self) -> None:
        self._pending = None
        self._tell(ToolsListChanged())

    def _tell(self, event: ServerEvent) -> None:
        for listener in tuple(self._listeners.values()):
            listener(event)

    def _rest(self) -> None:
        if self._leave is not None:
            self._leave()
            self._leave = None
        if self._pending is not None:
            self._pending.cancel()
            self._pending = None


def _served(wanted: SubscriptionFilter) -> SubscriptionFilter:
    """The part of what a client wants that there are notices of."""
    return SubscriptionFilter(tools_list_changed=wanted.tools_list_changed)
