"""Who is remembered as a subscriber of a resource, and for how long."""

from typing import Any

from tests.integration.bus.conftest import ACME, Two, make_record

_ENDED = 30


async def test_subscribers_that_have_expired_do_not_pile_up(two: Two, raw: Any) -> None:
    """Ours: of a resource that never changes the ended sessions are forgotten as others subscribe (RES-6)."""
    subscriptions, sessions = two.here.subscriptions, two.here.sessions
    await subscriptions.subscribe(two.keys, "note://1")
    for _ in range(_ENDED):
        record = make_record()
        await sessions.create(record, cap=1000)
        keys = sessions.keys(ACME, record.id)
        await subscriptions.subscribe(keys, "note://1")
        await raw.delete(keys.record)  # as when it expires
    for _ in range(_ENDED):  # whoever comes looks at some of the others
        await subscriptions.subscribe(two.keys, "note://1")

    [subscribers] = [key async for key in raw.scan_iter("*subscribers*")]
    assert await raw.scard(subscribers) < _ENDED // 3
    assert await raw.sismember(subscribers, two.record.id)
