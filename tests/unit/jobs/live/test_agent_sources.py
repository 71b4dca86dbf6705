"""Checks of what programs offer: one reading of a message, one thread of a tenant, and a rest after costly ones."""

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest

from gateway.catalog.live.limits import DISCOVERY_CPU_S
from gateway.domain.identifiers import TenantId
from gateway.domain.live_sources import DiscoveredPrimitive
from gateway.domain.primitives import Family
from gateway.errors import LimitExceeded
from gateway.jobs.live import agent_sources
from gateway.jobs.live.agent_sources import AgentSources
from gateway.upstream.live.agent.limits import MAX_DEFINITIONS_BYTES

ACME, GLOBEX = TenantId("ten_acme"), TenantId("ten_globex")


def _tool(name: str, **more: object) -> DiscoveredPrimitive:
    return DiscoveredPrimitive(family=Family.TOOL, name=name, definition={"name": name, "description": "d", **more})


@pytest.fixture
def sources() -> AgentSources:
    """Sources that only check."""
    nothing = cast("Any", None)
    return AgentSources(nothing, nothing, nothing, replica="r1")


async def test_each_definition_has_its_own_fault(sources: AgentSources) -> None:
    """Ours: however many are wrong; notices are bounded, faults name all (DYN-2)."""
    wrong = [_tool(f"t{number}", inputSchema={"type": "object", "properties": 7}) for number in range(80)]
    faults = await sources.check(ACME, [_tool("good"), *wrong, _tool("a\nb"), _tool("last")])

    assert (faults[0], faults[-1]) == (None, None)
    assert all(fault is not None and "inputSchema" in fault for fault in faults[1:-2])
    assert "not printable" in (faults[-2] or "")


async def test_a_message_is_one_reading(sources: AgentSources) -> None:
    """Ours: its limits, and so its processor time, hold for all definitions together (TEN-5)."""
    large: dict[str, Any] = {"type": "object", "properties": {}, "description": "x" * 60_000}
    faults = await sources.check(ACME, [_tool(f"t{number}", inputSchema=large) for number in range(80)])

    assert faults[0] is None
    assert str(MAX_DEFINITIONS_BYTES) in (faults[-1] or "")


async def test_a_tenant_checks_one_message_at_a_time(sources: AgentSources) -> None:
    """Ours: a second one waits, and another tenant's does not (TEN-5)."""
    async with vars(sources)["_checks"].hold(ACME):
        waiting: asyncio.Task[Sequence[str | None]] = asyncio.ensure_future(sources.check(ACME, [_tool("a")]))
        assert await sources.check(GLOBEX, [_tool("a")]) == [None]
        assert not waiting.done()
    assert await waiting == [None]


async def test_a_tenant_with_costly_definitions_rests(sources: AgentSources, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: checks are charged by processor time; another tenant is served meanwhile (TEN-5)."""
    charged = vars(sources)["_time"]
    await sources.check(ACME, [_tool("a")])
    assert charged.wait_for(ACME, charged.burst) > 0
    monkeypatch.setattr(agent_sources, "CHECK_WAIT_S", 0.05)
    charged.take(ACME, 1.5 * DISCOVERY_CPU_S)
    with pytest.raises(LimitExceeded):
        await sources.check(ACME, [_tool("a")])
    assert await sources.check(GLOBEX, [_tool("a")]) == [None]
