"""One open attachment: interval between discoveries of a source."""

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import anyio

from gateway.domain.identifiers import LiveSourceId, TenantId
from gateway.domain.live_sources import DiscoveredPrimitive, Discovery, LiveKind, LiveSource
from gateway.domain.primitives import Family
from gateway.domain.refusals import LiveSourceFailed
from gateway.jobs.live.held import HeldAttachment
from gateway.jobs.live.source_reports import SourceReports
from gateway.upstream.live.interfaces import LiveClient, LiveMethod

NOW = datetime(2026, 11, 23, tzinfo=UTC)
SOURCE = LiveSource(
    tenant=TenantId("ten_acme"), id=LiveSourceId("liv_1"), name="x", kind=LiveKind.MCP, created_at=NOW, updated_at=NOW
)
COSTLY_S = 0.3


class Restless:
    """An attachment that reports a change whenever it is discovered."""

    is_local = False

    def retire(self) -> None:
        raise AssertionError

    def __init__(self, reports: SourceReports) -> None:
        self.reports = reports
        self.count = 0

    async def discover(self) -> Discovery:
        self.reports.changed()
        self.count += 1
        return Discovery(title=str(self.count))

    async def request(self, method: LiveMethod, params: Mapping[str, object], client: LiveClient) -> Mapping[str, Any]:
        raise AssertionError(method, params, client)

    async def wait_closed(self) -> str:
        raise AssertionError


async def test_a_costly_source_rests_between_discoveries() -> None:
    """Attack: a source that reports changes without end gets a fifth of the time that its checks take, at most."""
    reports = SourceReports()
    held = HeldAttachment(source=SOURCE, attachment=Restless(reports), reports=reports)
    times: list[tuple[float, float]] = []

    async def record(_: HeldAttachment, __: Discovery) -> bool:
        began = time.monotonic()
        await anyio.sleep(COSTLY_S)
        times.append((began, time.monotonic()))
        return len(times) < 3

    async def publish(_: LiveSource, __: str) -> None:
        raise AssertionError

    reports.changed()
    with anyio.fail_after(60):
        await held.follow(record, publish)
    for (began, ended), (again, _) in pairwise(times):
        assert again - ended >= 4 * (ended - began) * 0.9


class Silent(Restless):
    """An attachment whose list changes without a report, and cannot be read at times."""

    titles = ("a", None, "a", "a", "b", "b")

    async def discover(self) -> Discovery:
        title = self.titles[min(self.count, len(self.titles) - 1)]
        self.count += 1
        if title is None:
            raise LiveSourceFailed("down")
        return Discovery(title=title)


async def test_a_list_that_changes_silently_is_read_again() -> None:
    """A change without a report is found by schedule; what is unchanged is not stored again (DYN-5)."""
    reports = SourceReports()
    silent = Silent(reports)
    held = HeldAttachment(source=SOURCE, attachment=silent, reports=reports, reread_s=0.01)
    found: list[str] = []

    async def record(_: HeldAttachment, discovery: Discovery) -> bool:
        found.append(discovery.title)
        return discovery.title != "b"

    async def publish(_: LiveSource, __: str) -> None:
        raise AssertionError

    await held.discover()
    with anyio.fail_after(60):
        await held.follow(record, publish)
    assert found == ["a", "b"]
    assert silent.count == 5


async def test_a_notice_of_a_source_is_recorded_with_its_next_discovery() -> None:
    """Each notice costs one discovery, and there are at most ten (DYN-5)."""
    reports = SourceReports()
    held = HeldAttachment(source=SOURCE, attachment=Silent(reports), reports=reports)
    for number in range(20):
        reports.noticed(f"fault {number // 2}")
        reports.noticed("a line was skipped")
    assert reports.has_changed
    assert (await held.discover()).notices == tuple(reports.notices)
    assert len(reports.notices) == 10


class Paged(Restless):
    """An attachment with a page, whose digest cannot be read."""

    async def discover(self) -> Discovery:
        self.count += 1
        page = DiscoveredPrimitive(family=Family.RESOURCE, name="ui://v", definition={"name": "v"})
        return Discovery(primitives=(page,), title=str(self.count))

    async def request(self, method: LiveMethod, params: Mapping[str, object], client: LiveClient) -> Mapping[str, Any]:
        assert (method, params) == ("resources/read", {"uri": "ui://v"})
        return {"contents": [{"text": "x"}]}


async def test_an_update_of_a_page_is_published_under_its_shown_uri_and_leads_to_a_discovery() -> None:
    """A page that changes is read at once, so that its review can begin (DYN-5)."""
    reports = SourceReports()
    held = HeldAttachment(source=SOURCE, attachment=Paged(reports), reports=reports)
    published: list[str] = []

    async def record(_: HeldAttachment, discovery: Discovery) -> bool:
        assert discovery.primitives[0].page
        return False

    async def publish(_: LiveSource, uri: str) -> None:
        published.append(uri)

    await held.discover()
    for uri in ("ui://v", "ui://other"):
        reports.updated(uri)
    with anyio.fail_after(60):
        await held.follow(record, publish)
    assert published == ["ui://x/v"]
