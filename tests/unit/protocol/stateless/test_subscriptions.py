"""Notifications of a listening client, those that wait for a newer catalog, and the SDK's form of them."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, cast

import anyio
import pytest
from mcp.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import SubscriptionFilter, SubscriptionsListenRequestParams

from gateway.catalog.calls.mcp_tasks import TaskRecords
from gateway.definitions.json_schema.validator_cache import Validators
from gateway.domain.http.requests import Credential, NamedCredential
from gateway.domain.identifiers import KeyId, SourceId, TenantId
from gateway.domain.primitives import Family
from gateway.domain.tenancy.keys import Scope
from gateway.domain.tenancy.principals import Principal
from gateway.domain.tenancy.profiles import DEFAULT_PROFILE
from gateway.errors import Unavailable
from gateway.handlers.binding import Binder
from gateway.protocol.request_context import CURRENT_REQUEST, RequestContext
from gateway.protocol.stateless.subscription_stream import SubscriptionStreams
from gateway.protocol.stateless.subscriptions import Subscription, SubscriptionHub
from gateway.redis.limits.stream_limiter import StreamLimiter
from gateway.registry.connections.subscriber_index import Listener
from gateway.registry.cursors import Cursors
from gateway.registry.registry import Registry
from gateway.registry.views import SnapshotView
from gateway.upstream.client import UpstreamClient
from tests.support.snapshots import imported, primitive, snapshot
from tests.unit.protocol.test_sdk_streams import Asgi

ALICE = Principal(
    tenant=TenantId("ten_a"), slug="acme", key=KeyId("key_1"), subject="alice", scopes=frozenset({Scope.MCP})
)
README, CHANGES = (primitive(Family.RESOURCE, uri) for uri in ("docs://readme", "docs://changes"))


class _NoSecrets:
    async def credentials(self, tenant: TenantId, source: SourceId) -> Mapping[str, Credential]:
        return {}

    async def named(self, tenant: TenantId, name: str) -> NamedCredential | None:
        return None


class _Catalogs:
    """A catalog that moves on request of a test."""

    def __init__(self) -> None:
        self.is_known = True
        self.listeners: list[Listener] = []

    def subscribe(self, shown: Registry, listener: Listener) -> Callable[[], None]:
        del shown
        self.listeners.append(listener)
        return lambda: self.listeners.remove(listener)

    has_new_code = False

    def is_current(self, shown: Registry) -> bool:
        del shown
        return self.is_known


class _Free:
    """Places without end."""

    def __init__(self) -> None:
        self.held = 0

    async def acquire(self, tenant: TenantId, key: KeyId, cap: int) -> str:
        del tenant, key, cap
        self.held += 1
        return "place"

    async def release(self, tenant: TenantId, key: KeyId, place: str) -> None:
        del tenant, key, place
        self.held -= 1


def _registry(*resources: Any, tools: tuple[str, ...] = ("list_pets",), revision: int = 1) -> Registry:
    shown = snapshot(tools=[imported(name) for name in tools], primitives=resources, revision=revision)
    view = SnapshotView(shown, Binder(UpstreamClient(), _NoSecrets(), Validators()), None)
    return Registry(ALICE, DEFAULT_PROFILE, view, Cursors(b"k" * 32))


def _listen(registry: Registry, catalogs: _Catalogs, *uris: str, **lists: bool) -> Subscription:
    return Subscription(registry, catalogs, SubscriptionFilter(resource_subscriptions=list(uris) or None, **lists))


async def test_a_client_gets_the_requested_and_permitted_lists() -> None:
    """MCP: lists that were not requested, not declared or may not be read are left out (RES-4)."""
    registry = _registry(README)
    subscription = _listen(
        registry,
        _Catalogs(),
        "docs://readme",
        "docs://none",
        "docs://readme",
        tools_list_changed=True,
        prompts_list_changed=True,
    )

    assert subscription.served == SubscriptionFilter(tools_list_changed=True, resource_subscriptions=["docs://readme"])
    assert (
        _listen(_registry(), _Catalogs(), "docs://readme", resources_list_changed=True).served == SubscriptionFilter()
    )


async def test_a_repeated_change_is_notified_once() -> None:
    """Ours: a client that reads slowly finds the newest state, not a queue (CAP-2)."""
    subscription = _listen(_registry(README, CHANGES), _Catalogs(), "docs://readme", "docs://changes")
    woken: list[None] = []
    subscription.wake = lambda: woken.append(None)
    for uri in ("docs://changes", "docs://readme", "docs://changes", "docs://none"):
        subscription.notify(uri)

    assert (list(subscription.drain()), subscription.drain()) == (["docs://changes", "docs://readme"], ())
    subscription.notify("docs://readme")
    assert list(subscription.drain()) == ["docs://readme"]
    assert woken


async def test_pending_updates_of_hidden_resources_are_dropped() -> None:
    """Ours: a client that reads slowly gets no update of a resource that it may no longer read (RES-4, TEN-5)."""
    before = _registry(README, CHANGES)
    subscription = _listen(before, _Catalogs(), "docs://readme", "docs://changes")
    subscription.notify("docs://readme", "docs://changes")

    subscription.on_catalog_change(before, _registry(CHANGES, revision=2))

    assert list(subscription.drain()) == ["docs://changes"]
    subscription.close()


async def test_a_burst_of_updates_is_notified_together() -> None:
    """Ours: simultaneous changes wake a client once, each resource notified once and in its order (RES-4)."""
    subscriptions, registry = SubscriptionHub(_Catalogs(), cast(StreamLimiter, _Free())), _registry(README, CHANGES)
    wanted = SubscriptionFilter(resource_subscriptions=["docs://readme", "docs://changes"])
    subscription, woken, notified = await subscriptions.open(registry, wanted), asyncio.Event(), list[Any]()

    def wake() -> None:
        notified.append(list(subscription.drain()))
        woken.set()

    subscription.wake = wake
    for uri in ("docs://changes", "docs://readme", "docs://changes", "docs://none", "docs://changes"):
        subscriptions.publish(ALICE.tenant, uri)
        subscriptions.publish(TenantId("ten_b"), uri)
    with anyio.fail_after(10):
        await woken.wait()
    await subscriptions.close(subscription)

    assert notified == [["docs://changes", "docs://readme"]]


async def test_an_update_waits_for_the_catalog_that_decides_about_it() -> None:
    """Ours: a client that may no longer read a resource is not notified by a replica that has yet to learn of it
    (TEN-5).
    """
    catalogs, before = _Catalogs(), _registry(README, CHANGES)
    subscription = _listen(before, catalogs, "docs://readme", "docs://changes")
    catalogs.is_known = False
    subscription.notify("docs://readme")
    subscription.notify("docs://changes")
    assert subscription.drain() == ()

    catalogs.is_known = True
    subscription.on_catalog_change(before, _registry(CHANGES, revision=2))

    assert list(subscription.drain()) == ["docs://changes"]
    subscription.close()


async def test_changed_lists_are_notified_as_requested() -> None:
    """MCP: only the kinds that were asked for (CAP-2)."""
    before = _registry(README)
    subscription = _listen(before, _Catalogs(), tools_list_changed=True)
    woken = asyncio.Event()
    subscription.wake = woken.set
    subscription.on_catalog_change(before, _registry(README, CHANGES, tools=("list_pets", "get_pet"), revision=2))
    with anyio.fail_after(30):
        await woken.wait()

    assert list(subscription.drain()) == [Family.TOOL]


async def test_a_listener_ends_with_its_tenant_its_key_and_its_replica() -> None:
    """Ours: each end is one of which the client is notified (RES-6, SRV-3)."""
    free = _Free()
    catalogs = _Catalogs()
    subscriptions = SubscriptionHub(catalogs, cast(StreamLimiter, free))
    registry = _registry()
    one, two, three = [await subscriptions.open(registry, SubscriptionFilter()) for _ in range(3)]
    catalogs.listeners[0](registry, None)
    assert (one.is_over, two.is_over) == (True, False)
    await subscriptions.close(one)
    subscriptions.end(ALICE.tenant, lambda principal: principal.key == "key_2")
    subscriptions.end(TenantId("ten_b"), lambda _: True)
    assert not two.is_over
    await subscriptions.close(three)
    subscriptions.end(ALICE.tenant, ALICE.__eq__)
    assert (two.is_over, len(subscriptions)) == (True, 1)
    await subscriptions.close(two)
    subscriptions.end_all()

    assert (len(subscriptions), free.held, catalogs.listeners) == (0, 0, [])
    with pytest.raises(Unavailable):
        await subscriptions.open(registry, SubscriptionFilter())


async def test_the_sdk_notifies_in_the_same_form() -> None:
    """MCP: acknowledged first, then what changes, then the final result, each with the subscription's id (RES-4)."""
    subscriptions, registry = SubscriptionHub(_Catalogs(), cast(StreamLimiter, _Free())), _registry(README)
    server: Server[Any] = Server("t", version="1")
    streams = SubscriptionStreams(subscriptions, cast(TaskRecords, None))
    server.add_request_handler("subscriptions/listen", SubscriptionsListenRequestParams, streams.serve)
    server.middleware.clear()
    manager = StreamableHTTPSessionManager(app=server, json_response=True, stateless=True)
    wanted = {"toolsListChanged": True, "resourceSubscriptions": ["docs://readme"]}
    asked = Asgi("subscriptions/listen", {"notifications": wanted})
    CURRENT_REQUEST.set(RequestContext(ALICE, registry, "c"))
    async with manager.run(), anyio.create_task_group() as group:
        group.start_soon(manager.handle_request, asked.scope, asked.receive, asked.send)
        with anyio.fail_after(10):
            await asked.arrived.wait()
        subscriptions.publish(ALICE.tenant, "docs://readme")
        subscriptions.end_all()

    order = ["acknowledged", "resources/updated", '"resultType":"complete"']
    places = [asked.reported.index(word) for word in order]
    assert places == sorted(places)
    assert asked.reported.count('"io.modelcontextprotocol/subscriptionId":1') == 3
    assert len(subscriptions) == 0
