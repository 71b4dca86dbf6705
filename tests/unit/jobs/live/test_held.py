"""One open attachment: how often a source is discovered again."""

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import anyio

from gateway.domain.identifiers import LiveSourceId, TenantId
from gateway.domain.live_sources import Discovery, LiveKind, LiveSource
from gateway.jobs.live.held import HeldAttachment, SourceReports
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

    async def discover(self) -> Discovery:
        self.reports.changed()
        return Discovery()

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
