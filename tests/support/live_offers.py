"""Live sources and what they offer, for tests of the catalog."""

from datetime import UTC, datetime
from typing import Any

from gateway.domain.identifiers import LiveSourceId, TenantId
from gateway.domain.live_sources import DiscoveredPrimitive, Discovery, LiveKind, LiveSource
from gateway.domain.primitives import Family

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def live_source(name: str = "editor", **facts: Any) -> LiveSource:
    """A live source that is not stored."""
    made: dict[str, Any] = {
        "tenant": TenantId("ten_acme"),
        "id": LiveSourceId(f"liv_{name}"),
        "name": name,
        "kind": LiveKind.AGENT,
        "created_at": NOW,
        "updated_at": NOW,
    }
    return LiveSource(**{**made, **facts})


def offered_tool(name: str, /, **members: object) -> DiscoveredPrimitive:
    """A tool as a live source lists it."""
    definition: dict[str, object] = {"name": name, "description": f"{name} it", "inputSchema": {"type": "object"}}
    return DiscoveredPrimitive(family=Family.TOOL, name=name, definition=definition | members)


def offered(family: Family, name: str, /, **members: object) -> DiscoveredPrimitive:
    """A primitive of another family as a live source lists it."""
    return DiscoveredPrimitive(family=family, name=name, definition=members)


def offer_of(*primitives: DiscoveredPrimitive, **facts: Any) -> Discovery:
    """A discovery of these primitives."""
    return Discovery(primitives=primitives, **facts)
