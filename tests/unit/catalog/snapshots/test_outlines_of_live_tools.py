"""Outlines of live tools in the cache of the query tools."""

import gc
import json
import weakref
from typing import Any, cast

from gateway.catalog.snapshots.outline_cache import OutlineCache
from gateway.domain.identifiers import SourceId, TenantId
from gateway.domain.queries import Queried, QueriedKind, QueriedSource
from gateway.domain.tenancy.policy import Safety
from gateway.domain.tools import PrimitiveOrigin, Tool
from gateway.openapi.query.remote_tools import REMOTE_METHOD
from gateway.openapi.query.search import search

ACME, OTHER = TenantId("ten_acme"), TenantId("ten_other")
SOURCE = QueriedSource(id=SourceId("lvs_1"), name="sdk", version=1, kind=QueriedKind.LIVE)


def _queried(*definitions: dict[str, Any]) -> Queried:
    tools = [
        Tool(
            name=definition["name"],
            definition=json.dumps({"inputSchema": {"type": "object"}, **definition}).encode(),
            safety=Safety.MODERATE,
            safety_reasons=(),
            origin=PrimitiveOrigin.LIVE,
            identity=f"{REMOTE_METHOD} {definition['name']}",
        )
        for definition in definitions
    ]
    return Queried(source=SOURCE, tools={tool.identity: tool for tool in tools}, is_whole=True)


def _cache(room: int) -> OutlineCache:
    return OutlineCache(cast("Any", None), room=room)  # live tools are not read from the database


async def test_a_tool_is_found_by_its_words() -> None:
    """DYN-5: title or the first line, description, parameters; whatever a server may put there."""
    index = await _cache(1_000_000).of(
        ACME,
        _queried(
            {
                "name": "find",
                "description": "\nFinds a shelf.\nIn the cellar.",
                "inputSchema": {"properties": {"aisle": {}}},
            },
            {"name": "odd", "title": "Odd one", "description": 7, "inputSchema": {"properties": []}},
            {"name": "large", "description": "x" * 100_000, "outputSchema": {"type": "object"}},
        ),
    )

    found = index.endpoints["TOOL find"]
    assert (found.summary, found.parameters) == ("Finds a shelf.", ("aisle",))
    assert [hit.endpoint.path for hit in search(index.words, "aisles", None)] == ["find"]
    assert [hit.endpoint.path for hit in search(index.words, "cellar", None)] == ["find"]
    assert index.endpoints["TOOL odd"].summary == "Odd one"
    assert len(index.endpoints["TOOL large"].summary) <= 200
    assert b"outputSchema" in bytes(index.endpoints["TOOL large"].details)


async def test_one_tenants_views_leave_those_of_others() -> None:
    """Ours: many profiles of a large server take a tenant's share of the memory, and no more (ISO-1)."""
    cache = _cache(4_000_000)
    quiet, first = _queried({"name": "find"}), _queried({"name": "a", "description": "x" * 100_000})
    await cache.of(OTHER, quiet)
    await cache.of(ACME, first)
    for _ in range(40):
        await cache.of(ACME, _queried({"name": "a", "description": "x" * 100_000}))
    loaded = cache.loaded

    await cache.of(OTHER, quiet)
    assert cache.loaded == loaded
    await cache.of(ACME, first)
    assert cache.loaded == loaded + 1


async def test_a_dropped_index_is_freed_although_its_lists_live() -> None:
    """Ours: views of callers keep no index beyond the bytes of the cache (ISO-3)."""
    cache = _cache(1)
    first, second = _queried({"name": "a", "inputSchema": {}}), _queried({"name": "b", "inputSchema": {}})
    index = await cache.of(ACME, first)
    assert index.view(first) is index.view(first)
    assert [one.path for one in index.view(first).endpoints] == ["a"]
    dropped = weakref.ref(index)

    del index
    await cache.of(ACME, second)
    gc.collect()

    assert dropped() is None
    assert (await cache.of(ACME, first)).view(first).shown == b"\1"
