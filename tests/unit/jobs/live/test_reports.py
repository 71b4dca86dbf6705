"""Reports of an attachment: several count as one, and a source that reports without end is discovered seldom."""

import anyio

from gateway.jobs.live.source_reports import SourceReports


async def test_reports_are_gathered() -> None:
    """Ours: simultaneous reports are one, and nothing is lost (DYN-1)."""
    reports = SourceReports()
    reports.updated("note://1")
    reports.changed()
    reports.updated("note://2")
    with anyio.fail_after(10):
        assert await reports.next(rest_s=0, due_s=3600) == (True, {"note://1", "note://2"})
        reports.updated("note://3")
        assert await reports.next(rest_s=0, due_s=3600) == (False, {"note://3"})


async def test_updates_pass_while_discovery_rests_and_the_change_is_kept() -> None:
    """Attack: a source whose definitions are costly to check reports changes without end."""
    reports = SourceReports()
    with anyio.fail_after(10):
        reports.changed()
        reports.updated("note://1")
        assert await reports.next(rest_s=3600, due_s=3600) == (False, {"note://1"})
        with anyio.move_on_after(0.5) as waiting:
            reports.changed()
            await reports.next(rest_s=3600, due_s=3600)
        assert waiting.cancelled_caught
        assert await reports.next(rest_s=0, due_s=3600) == (True, set())


async def test_a_flood_of_updates_is_bounded() -> None:
    """Attack: different URIs without end cost bounded memory."""
    reports = SourceReports()
    for number in range(10_000):
        reports.updated(f"note://{number}")
    with anyio.fail_after(10):
        _, updates = await reports.next(rest_s=0, due_s=3600)
    assert len(updates) == 500
