"""Discovery of a remote server's primitives by paginated lists, within limits.

A faulty list costs only itself: what was read of it is used, and a notice reports the fault.
"""

from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any, Protocol, cast

import msgspec

from gateway.domain.live_sources import DiscoveredPrimitive, Discovery
from gateway.domain.primitives import Family
from gateway.domain.refusals import LiveSourceFailed
from gateway.errors import UpstreamAnswerTooLarge, UpstreamError
from gateway.upstream.live.interfaces import LiveClient
from gateway.upstream.live.mcp.endpoint import HttpRefusal
from gateway.upstream.live.mcp.limits import MAX_CURSOR_LENGTH, MAX_DEFINITIONS_BYTES, MAX_OF_A_FAMILY, MAX_PAGES
from gateway.upstream.live.mcp.messages import METHOD_UNKNOWN, InvalidMessage, RemoteRefusal, is_object
from gateway.upstream.live.mcp.session import ServerFacts
from gateway.upstream.live.mcp.time_limit import TimeLimit

_LISTS = (
    (Family.TOOL, "tools", "tools/list", "tools", "name"),
    (Family.RESOURCE, "resources", "resources/list", "resources", "uri"),
    (Family.TEMPLATE, "resources", "resources/templates/list", "resourceTemplates", "uriTemplate"),
    (Family.PROMPT, "prompts", "prompts/list", "prompts", "name"),
)
"""Family, capability, method, member of the result, and member with the name."""
_MEMBERS = {method: member for _, _, method, member, _ in _LISTS}


class ListFault(LiveSourceFailed):
    """A list is not one of MCP, or too long."""


_OF_ONE_LIST = (ListFault, InvalidMessage, RemoteRefusal, HttpRefusal, UpstreamAnswerTooLarge)


class Lister(Protocol):
    """Runs requests of the gateway itself."""

    facts: ServerFacts

    async def call(
        self, method: str, params: dict[str, object], client: LiveClient | None, limit: TimeLimit, /
    ) -> dict[str, Any]:
        """Run one request."""
        ...


async def pages(lister: Lister, method: str, limit: TimeLimit) -> AsyncGenerator[list[object]]:
    """Yield the entries of each page.

    Raises:
        ListFault: a page is not a list, there are too many pages, or a cursor is repeated.
        LiveSourceFailed: the server refused the request, or did not respond.
    """
    cursor: str | None = None
    seen: set[str] = set()
    for _ in range(MAX_PAGES):
        result = await lister.call(method, {} if cursor is None else {"cursor": cursor}, None, limit)
        entries, following = result.get(_MEMBERS[method]), result.get("nextCursor")
        if not isinstance(entries, list):
            raise ListFault(f"the server's response to {method} has no list")
        yield cast("list[object]", entries)
        if following is None:
            return
        cursor = following if isinstance(following, str) else None
        if cursor is None or len(cursor) > MAX_CURSOR_LENGTH or cursor in seen:  # guard: live-repeated-cursor
            raise ListFault(f"the server's response to {method} has an invalid or repeated cursor")
        seen.add(cursor)
    raise ListFault(f"the list of {method} has more than {MAX_PAGES} pages")


async def discover(lister: Lister, limit: TimeLimit, last: Sequence[DiscoveredPrimitive] = ()) -> Discovery:
    """List all declared primitives of the server; entries beyond a limit are skipped with a notice.

    If a list is refused or invalid, the entries of `last` stay that were not read.

    Raises:
        LiveSourceFailed: the server did not respond, or refused every list.
    """
    reading = _CollectedEntries()
    lists = [one for one in _LISTS if lister.facts.has(one[1])]
    faults: list[UpstreamError] = []
    for family, _, method, _, named in lists:
        try:
            async with aclosing(pages(lister, method, limit)) as listed:
                async for page in listed:
                    reading.add(page, family, method, named)
        except _OF_ONE_LIST as fault:
            if isinstance(fault, RemoteRefusal) and fault.number == METHOD_UNKNOWN:
                continue  # a server may have resources but no templates
            faults.append(fault)
            reading.keep(last, family, f"{method}: {fault.message}; its list ends there")
    if faults and not reading.pages:
        raise faults[0]
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
        self.pages = 0

    def keep(self, last: Sequence[DiscoveredPrimitive], family: Family, notice: str) -> None:
        """Keep the last entries of a family whose list ended with a fault."""
        found = {one.name for one in self.found if one.family is family}
        self.found += [one for one in last if one.family is family and one.name not in found]
        self.notices[notice] = None

    def add(self, page: Sequence[object], family: Family, method: str, named: str) -> None:
        """Add the entries of one page."""
        self.pages += 1
        for entry in page:
            if not is_object(entry):
                self.notices[f"an entry of {method} is no object"] = None
                continue
            self._size += len(msgspec.json.encode(entry))
            if self._size > MAX_DEFINITIONS_BYTES:  # guard: live-discovery-bytes
                raise ListFault(f"the server's definitions have more than {MAX_DEFINITIONS_BYTES:,} bytes")
            name = entry.get(named)
            self._counts[method] += 1
            if self._counts[method] > MAX_OF_A_FAMILY:  # guard: live-discovery-count
                self.notices[f"{method} has more than {MAX_OF_A_FAMILY} entries; further entries were skipped"] = None
            elif isinstance(name, str):
                self.found.append(DiscoveredPrimitive(family=family, name=name, definition=entry))
            else:
                self.notices[f"an entry of {method} has no {named}"] = None
