"""Changes of a catalog, notified once for simultaneous ones."""

import asyncio

import anyio

from gateway.domain.primitives import Family
from gateway.protocol.methods.limits import DEBOUNCE_S
from gateway.protocol.methods.list_change_debouncer import ListChangeDebouncer


async def test_many_changes_of_a_moment_are_one_notice() -> None:
    """Ours: lists that change many times at once are notified once, in a fixed order (CAP-2)."""
    ripe = asyncio.Event()
    changes = ListChangeDebouncer(ripe.set)
    for family in (Family.PROMPT, Family.TOOL, Family.PROMPT):
        changes.note_lists(family)
    assert changes.take() == ()

    with anyio.fail_after(30):
        await ripe.wait()

    assert changes.take() == (Family.TOOL, Family.PROMPT)
    assert changes.take() == ()


async def test_after_closing_no_change_is_notified() -> None:
    """Ours: no timer outlives its stream."""
    notified: list[None] = []
    changes = ListChangeDebouncer(lambda: notified.append(None))
    changes.note_lists(Family.TOOL)
    changes.close()
    changes.close()
    await asyncio.sleep(DEBOUNCE_S * 1.5)

    assert notified == []
