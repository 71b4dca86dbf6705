"""Pages (MCP Apps) of a live source, read with each discovery, so that a change of their contents is noticed."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import anyio

from gateway.definitions.excerpts import shorten
from gateway.definitions.live.page_digests import page_digest
from gateway.definitions.live.page_uris import is_page, pages_of
from gateway.domain.live_sources import PAGE_TYPE, DiscoveredPrimitive, Discovery
from gateway.domain.primitives import Family
from gateway.errors import GatewayError
from gateway.jobs.live.limits import MAX_PAGES, MAX_SHOWN_URI, PAGE_READ_S, PAGES_READ_S
from gateway.jobs.live.null_client import NULL_CLIENT
from gateway.upstream.live.interfaces import LiveAttachment

_AT_ONCE = 4


class PageReader:
    """The digests of the pages of one source."""

    def __init__(self) -> None:
        self._digests: Mapping[str, str] = {}

    async def add_pages(self, attachment: LiveAttachment, found: Discovery, *, is_reviewed: bool) -> Discovery:
        """Return the discovery with all pages that its tools name, and with the digests of pages that are reviewed.

        A page that cannot be read keeps its last digest.
        """
        listed = {one.name: one for one in found.primitives if one.family is Family.RESOURCE and is_page(one.name)}
        named = {uri for one in found.primitives if one.family is Family.TOOL for uri in pages_of(one.definition)}
        if not listed and not named:
            self._digests = {}
            return found
        uris = [*listed, *sorted(named - listed.keys())]
        notices = (
            [] if len(uris) <= MAX_PAGES else [f"the source has more than {MAX_PAGES} pages; others are not listed"]
        )
        uris = uris[:MAX_PAGES]  # guard: live-page-count
        if is_reviewed:
            self._digests, faults = await self._read_all(attachment, uris)
            notices += faults
        pages = [replace(listed.get(uri) or _unlisted(uri), page=self._digests.get(uri, "")) for uri in uris]
        others = [one for one in found.primitives if one.name not in listed or one.family is not Family.RESOURCE]
        return replace(found, primitives=(*others, *pages), notices=(*found.notices, *notices))

    async def _read_all(
        self, attachment: LiveAttachment, uris: Sequence[str]
    ) -> tuple[Mapping[str, str], Sequence[str]]:
        """Read the pages; return their digests, and notices about those that cannot be read."""
        digests = {uri: digest for uri, digest in self._digests.items() if uri in uris}
        faults = dict.fromkeys(uris, "not in time")
        slots = anyio.CapacityLimiter(_AT_ONCE)

        async def read(uri: str) -> None:
            try:
                async with slots:
                    with anyio.fail_after(PAGE_READ_S):
                        result = await attachment.request("resources/read", {"uri": uri}, NULL_CLIENT)
            except TimeoutError:
                return
            except GatewayError as error:
                faults[uri] = error.message
                return
            if digest := page_digest(result):
                digests[uri] = digest
                del faults[uri]
            else:
                faults[uri] = "it has no contents"

        with anyio.move_on_after(PAGES_READ_S):
            async with anyio.create_task_group() as group:
                for uri in uris:
                    group.start_soon(read, uri)
        return digests, [f"page {shorten(uri, MAX_SHOWN_URI)} was not read: {fault}" for uri, fault in faults.items()]


def _unlisted(uri: str) -> DiscoveredPrimitive:
    """A page that the source does not list, but its tools name."""
    definition = {"uri": uri, "name": shorten(uri, MAX_SHOWN_URI), "mimeType": PAGE_TYPE}
    return DiscoveredPrimitive(family=Family.RESOURCE, name=uri, definition=definition)
