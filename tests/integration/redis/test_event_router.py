"""Events between the routers of two replicas, over a real Redis."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field

import pytest
from structlog.testing import capture_logs

from gateway.app.event_router import EventRoute, EventRouter
from gateway.domain.events import CatalogMoved, ResourceUpdated
from gateway.domain.identifiers import TenantId
from gateway.errors import RedisUnavailable
from gateway.redis.event_bus import EventBus
from tests.support.replicas import until

ACME = TenantId("ten_acme")
MOVED = CatalogMoved(tenant=ACME, revision=3)
UPDATED = ResourceUpdated(tenant=ACME, uri="note://1")


@dataclass
class Routed:
    """A router, and the subscribers that it called."""

    called: list[str] = field(default_factory=list[str])

    def router(self, bus: EventBus) -> EventRouter:
        """Build a router whose first subscriber on arrival fails."""
        return EventRouter(
            bus,
            {
                CatalogMoved: EventRoute[CatalogMoved](
                    caches=(lambda event: self.called.append(f"cache {event.revision}"),),
                    publisher=(self._note,),
                    arrival=(self._fail, lambda event: self.called.append(f"arrival {event.revision}")),
                ),
                ResourceUpdated: EventRoute[ResourceUpdated](arrival=(lambda _: self.called.append("updated"),)),
            },
            after_gap=(self._fail_after_gap, lambda: self.called.append("gap")),
        )

    async def _note(self, event: CatalogMoved) -> None:
        self.called.append(f"publisher {event.revision}")

    def _fail(self, event: CatalogMoved) -> None:
        raise ValueError(event)

    def _fail_after_gap(self) -> None:
        raise ValueError("a bug")


@pytest.fixture
async def buses(redis_url: str) -> AsyncGenerator[Sequence[EventBus]]:
    async with EventBus(redis_url, secret=b"s" * 32) as here, EventBus(redis_url, secret=b"s" * 32) as there:
        yield here, there


async def test_an_event_is_applied_before_it_is_sent_and_on_arrival_everywhere(buses: Sequence[EventBus]) -> None:
    """Ours: a publisher reads its own writes; a subscriber that fails keeps the event from no other one."""
    here, there = Routed(), Routed()
    with capture_logs() as lines:
        ours, theirs = here.router(buses[0]), there.router(buses[1])
        with ours.listening(), theirs.listening():
            await ours.publish(MOVED)
            assert here.called[:2] == ["cache 3", "publisher 3"]
            await until(lambda: "arrival 3" in here.called and "arrival 3" in there.called)
        await ours.publish(UPDATED)  # no longer delivered
        with theirs.listening():
            await theirs.publish(UPDATED)
            await until(lambda: "updated" in there.called)

    assert here.called == ["cache 3", "publisher 3", "cache 3", "arrival 3"]
    assert there.called[:2] == ["cache 3", "arrival 3"]
    assert [line["event"] for line in lines].count("subscriber_failed") == 2


async def test_an_event_is_applied_here_while_redis_is_away() -> None:
    """Ours: this replica's own caches follow its writes even when no other replica receives them."""
    here = Routed()

    with pytest.raises(RedisUnavailable):
        await here.router(EventBus("redis://127.0.0.1:1", secret=b"s" * 32)).publish(MOVED)

    assert here.called == ["cache 3", "publisher 3"]


async def test_every_cache_is_checked_after_a_gap(redis_url: str) -> None:
    """Ours: the first connection counts as a gap; a check that fails keeps no other one from running."""
    here = Routed()
    bus = EventBus(redis_url, secret=b"s" * 32)

    with here.router(bus).listening():
        async with bus:
            pass

    assert here.called == ["gap"]
