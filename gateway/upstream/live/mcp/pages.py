"""Discovery of a remote server's primitives by paginated lists, within limits."""

from collections import Counter
from collections.abc import AsyncGenerator
from typing import Any, Protocol, cast

import msgspec

from gateway.domain.live_sources import DiscoveredPrimitive, Discovery
from gateway.domain.primitives import Family
from gateway.domain.refusals import LiveSourceFailed
from gateway.upstream.live.interfaces import LiveClient
from gateway.upstream.live.mcp.messages import METHOD_UNKNOWN, RemoteRefusal, is_object
from gateway.upstream.live.mcp.session import ServerFacts
from gateway.upstream.live.mcp.time_limit import TimeLimit

MAX_PAGES = 20
MAX_OF_A_FAMILY = 500
MAX_BYTES = 8 * 1024 * 1024
"""Limit on the definitions of all families together, as compact JSON."""
_MAX_CURSOR_LENGTH = 4096

_LISTS = (
    (Family.TOOL, "tools", "tools/list", "tools", "name"),
    (Family.RESOURCE, "resources", "resources/list", "resources", "uri"),
    (Family.TEMPLATE, "resources", "resources/templates/list", "resourceTemplates", "uriTemplate"),
    (Family.PROMPT, "prompts", "prompts/list", "prompts", "name"),
)
"""Family, capability, method, member of the result, and member with the name."""
_MEMBERS = {method: member for _, _, method, member, _ in _LISTS}


class Lister(Protocol):
    """Runs requests of the gateway itself."""

    facts: ServerFacts

    async def call(
        self, method: str, params: dict[str, object], client: LiveClient | None, limit: TimeLimit, /
    ) -> dict[str, Any]:
        """Run one request."""
        ...


async def pages(lister: Lister, method: str, limit: TimeLimit) -> AsyncGenerator[list[dict[str, Any]]]:
    """Yield the entries of each page.

    Raises:
        LiveSourceFailed: a page is not a list of objects, there are too many pages, or a cursor is repeated.
    """
    cursor: str | None = None
    seen: set[str] = set()
    for _ in range(MAX_PAGES):
        result = await lister.call(method, {} if cursor is None else {"cursor": cursor}, None, limit)
        entries, following = result.get(_MEMBERS[method]), result.get("nextCursor")
        if not isinstance(entries, list):
            raise LiveSourceFailed(f"the server's response to {method} has no list")
        yield [entry for entry in cast("list[object]", entries) if is_object(entry)]
        if following is None:
            return
        cursor = following if isinstance(following, str) else None
        if cursor is None or len(cursor) > _MAX_CURSOR_LENGTH or cursor in seen:  # guard: live-repeated-cursor
            raise LiveSourceFailed(f"the server's response to {method} has an invalid or repeated cursor")
        seen.add(cursor)
    raise LiveSourceFailed(f"the list of {method} has more than {MAX_PAGES} pages")


async def discover(lister: Lister, limit: TimeLimit) -> Discovery:
    """List all declared primitives of the server; entries beyond the limit of a family are skipped with a notice.

    Raises:
        LiveSourceFailed: a list is invalid, too large, or incomplete.
    """
    reading = _CollectedEntries()
    for family, capability, method, _, named in _LISTS:
        if not lister.facts.has(capability):
            continue
        try:
            async for page in pages(lister, method, limit):
                reading.add(page, family, method, named)
        except RemoteRefusal as refusal:
            if refusal.number != METHOD_UNKNOWN:  # a server may have resources but no templates
                raise
    return Discovery(
        primitives=reading.found,
        title=lister.facts.title,
        notices=tuple(reading.notices),
        can_subscribe=lister.facts.has("resources", "subscribe"),
    )


class _CollectedEntries:
    """The entries collected so far from all lists."""

    def __init__(self) -> None:
        self.found: list[DiscoveredPrimitive] = []
        self.notices: dict[str, None] = {}
        self._counts: Counter[str] = Counter()
        self._size = 0

    def add(self, page: list[dict[str, Any]], family: Family, method: str, named: str) -> None:
        """Add the entries of one page."""
        for entry in page:
            self._size += len(msgspec.json.encode(entry))
            if self._size > MAX_BYTES:  # guard: live-discovery-bytes
                raise LiveSourceFailed(f"the server's definitions have more than {MAX_BYTES:,} bytes")
            name = entry.get(named)
            self._counts[method] += 1
            if self._counts[method] > MAX_OF_A_FAMILY:  # guard: live-discovery-count
                self.notices[f"{method} has more than {MAX_OF_A_FAMILY} entries; further entries were skipped"] = None
            elif isinstance(name, str):
                self.found.append(DiscoveredPrimitive(family=family, name=name, definition=entry))
            else:
                self.notices[f"an entry of {method} has no {named}"] = None
