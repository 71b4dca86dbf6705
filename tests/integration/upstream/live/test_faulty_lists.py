"""Lists of servers with faults: each fault costs one entry or the rest of one list, and is reported."""

import json
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from gateway.domain.live_sources import Discovery
from gateway.domain.primitives import Family
from gateway.domain.refusals import LiveSourceFailed
from gateway.upstream.live.mcp.changes import SKIPPED
from gateway.upstream.live.mcp.limits import MAX_OF_A_FAMILY, MAX_PAGES
from tests.integration.upstream.live.scripted_server import (
    EVENTS,
    Scripted,
    attached_to,
    event,
    json_body,
    result,
)
from tests.integration.upstream.loopback import Exchange

TOOL: dict[str, Any] = {"name": "t", "inputSchema": {}}
REFUSAL: dict[str, Any] = {"code": -32603, "message": "database is down"}


def script(**lists: Any) -> Scripted:
    """A server with one resource, and with these results of tools/list."""
    scripted = Scripted()
    scripted.states("resources/list", {"resources": [{"uri": "x:1", "name": "x"}]})
    refuse(scripted, "resources/templates/list", {"code": -32601, "message": "no"})
    scripted.states("tools/list", {"tools": [TOOL], **lists})
    return scripted


def refuse(scripted: Scripted, method: str, error: dict[str, Any]) -> None:
    """Let the server refuse a method."""

    async def reply(_: Exchange, message: dict[str, Any]) -> bytes:
        return json_body({"jsonrpc": "2.0", "id": message["id"], "error": error})

    scripted.replies[method] = reply


async def discover(scripted: Scripted) -> Discovery:
    """Result of a first discovery of the server."""
    async with attached_to(scripted) as world:
        return await world.attachment.discover()


def names(found: Discovery) -> list[str]:
    """The names that were found."""
    return [one.name for one in found.primitives]


@pytest.mark.parametrize("cursor", ["same", "", 7, "x" * 5000])
async def test_a_cursor_that_leads_nowhere_ends_its_list(cursor: object) -> None:
    """A server cannot keep the gateway listing, and a wrong cursor costs no tool that was read (DYN-5)."""
    scripted = script(nextCursor=cursor)
    found = await discover(scripted)
    assert set(names(found)) == {"t", "x:1"}
    assert list(found.notices) == [
        "tools/list: the server's response to tools/list has an invalid or repeated cursor; its list ends there"
    ]
    assert len(scripted.sent("tools/list")) <= 2


async def test_endless_pages_end_their_list() -> None:
    """Ours: at most 20 pages are read."""
    scripted = script()

    async def page(_: Exchange, message: dict[str, Any]) -> bytes:
        number = message["id"]
        tools: list[dict[str, Any]] = [TOOL | {"name": f"t{number}"}]
        return json_body(result(message, {"tools": tools, "nextCursor": str(number)}))

    scripted.replies["tools/list"] = page
    found = await discover(scripted)
    assert len(scripted.sent("tools/list")) == MAX_PAGES
    assert len(names(found)) == MAX_PAGES + 1
    assert "more than 20 pages" in found.notices[0]


async def test_too_many_entries_are_left_out() -> None:
    """Ours: the others stay usable, and the admin reads why."""
    entries: list[object] = [{"name": f"t{number}", "inputSchema": {}} for number in range(MAX_OF_A_FAMILY + 100)]
    found = await discover(script(tools=[7, {"title": "nameless"}, *entries]))
    families = [each.family for each in found.primitives]
    assert families.count(Family.TOOL) == MAX_OF_A_FAMILY - 1
    assert families.count(Family.RESOURCE) == 1
    assert list(found.notices) == [
        "an entry of tools/list is no object",
        "an entry of tools/list has no name",
        "tools/list has more than 500 entries; further entries were skipped",
    ]


async def test_huge_definitions_end_the_lists() -> None:
    """Ours: at most 8 MiB of definitions are read."""
    huge = {"name": "huge", "description": "x" * (9 << 20)}
    found = await discover(script(tools=[TOOL, huge, {"name": "last"}]))
    assert names(found) == ["t"]
    assert "more than 8,388,608 bytes" in found.notices[0]


@pytest.mark.parametrize(
    "fault",
    [REFUSAL, {"tools": "many"}, b'{"jsonrpc":"2.0","id":9,"result":{"tools":[],"tools":[]}}', b"<html>"],
    ids=["refused", "no list", "ambiguous", "no JSON"],
)
async def test_a_list_that_fails_keeps_the_known_definitions(fault: Any) -> None:
    """A list that the server refuses once hides nothing; a server that answers no list is lost (DYN-5)."""
    scripted, lists = script(), ("tools/list", "resources/list", "resources/templates/list")

    def fail(method: str) -> None:
        if fault is REFUSAL:
            refuse(scripted, method, REFUSAL)
        else:
            scripted.states(method, fault)

    async with attached_to(scripted) as world:
        assert names(await world.attachment.discover()) == ["t", "x:1"]
        for method in lists[:1]:
            fail(method)
        found = await world.attachment.discover()
        assert set(names(found)) == {"t", "x:1"}
        assert len(found.notices) == 1
        for method in lists[1:]:
            fail(method)
        with pytest.raises(LiveSourceFailed):
            await world.attachment.discover()


def changes(method: str) -> tuple[Callable[[Any], bytes], ...]:
    """An event that is no message, one that is no JSON-RPC, and a change."""
    changed = {"jsonrpc": "2.0", "method": method}
    return (lambda _: b"data: {oops\n\n", lambda _: event({"log": "ready"}), lambda _: event(changed))


@pytest.mark.parametrize("is_modern", [False, True])
async def test_a_message_that_cannot_be_read_costs_only_itself(*, is_modern: bool) -> None:
    """A stream of changes goes on after an event that is no message (DYN-5)."""
    scripted = script()
    scripted.is_modern = is_modern
    notification = "notifications/tools/list_changed"

    async def stream(exchange: Exchange, message: dict[str, Any]) -> None:
        await exchange.write(EVENTS + b"".join(make(message) for make in changes(notification)))
        await exchange.reader.read()

    scripted.replies["subscriptions/listen" if is_modern else "GET"] = stream
    async with attached_to(scripted) as world:
        await world.attachment.discover()
        with anyio.fail_after(10):
            await world.listener.has_changed.wait()
        assert set(world.listener.notices) == {SKIPPED}
    assert json.dumps(scripted.messages).count('"initialize"') <= 1
