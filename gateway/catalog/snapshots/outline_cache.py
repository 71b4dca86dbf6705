"""Cache of outlines of documents and live tools, for the query tools: built on first use, limited in bytes."""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field

import anyio

from gateway.catalog.snapshots.limits import MAX_OUTLINES_BYTES
from gateway.domain.fairness.share import share_of
from gateway.domain.fairness.thread_kinds import SNAPSHOT_LOADS
from gateway.domain.fairness.threads import run_in_thread
from gateway.domain.identifiers import SourceId, TenantId
from gateway.domain.queries import Queried, QueriedKind
from gateway.errors import NotFound
from gateway.openapi.query.api import DocumentIndex
from gateway.openapi.query.outline import decode_outline
from gateway.openapi.query.remote_tools import outline_tools
from gateway.store.engine import Store
from gateway.store.sources import versions

_COPIES = 3
"""The estimated memory of the index of a live source, as a multiple of the size of its definitions."""

_Key = tuple[TenantId, SourceId, int | Queried]
"""Tenant, source, and the version of its document; for a live source, the tools that one view shows."""


@dataclass(slots=True)
class _CachedOutline:
    api: DocumentIndex | None = None
    loading: anyio.Lock = field(default_factory=anyio.Lock)


class OutlineCache:
    """The outlines of this replica by tenant, source and version; the least recently used one is dropped first.

    Sizes are read again at each eviction, unlike in `FairCache`: an outline grows when its word index is built.
    """

    def __init__(self, store: Store, *, room: int = MAX_OUTLINES_BYTES) -> None:
        self._store = store
        self._room = room
        self._entries: OrderedDict[_Key, _CachedOutline] = OrderedDict()
        self.loaded = 0

    async def of(self, tenant: TenantId, queried: Queried) -> DocumentIndex:
        """The outline of one version of a source, or of the shown tools of a live source.

        Raises:
            NotFound: that version has no outline or no longer exists.
            Unavailable: the database is unreachable.
        """
        source = queried.source
        key = (tenant, source.id, source.version if source.kind is QueriedKind.DOCUMENT else queried)
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = _CachedOutline()
        self._entries.move_to_end(key)
        if entry.api is not None:
            return entry.api
        async with entry.loading:
            found = entry.api
            if found is None:
                found = await self._fill(key, entry, queried)
            return found

    async def _fill(self, key: _Key, entry: _CachedOutline, queried: Queried) -> DocumentIndex:
        """Load the outline. A failed load leaves no entry."""
        try:
            entry.api = loaded = await self._load(key[0], queried)
        finally:
            if entry.api is None and self._entries.get(key) is entry:
                del self._entries[key]
        self._evict(key)
        return loaded

    async def _load(self, tenant: TenantId, queried: Queried) -> DocumentIndex:
        source = queried.source
        if source.kind is not QueriedKind.DOCUMENT:
            size = _COPIES * sum(len(tool.definition) for tool in queried.tools.values())  # guard: live-outline-bytes
            self.loaded += 1
            return DocumentIndex(
                await run_in_thread(SNAPSHOT_LOADS, tenant, outline_tools, source.name, queried.tools), size
            )
        async with self._store.reading(tenant) as db:
            stored = await versions.outline(tenant, db, source.id, source.version)
        if stored is None:
            raise NotFound(f"the source {source.name} has changed; retry")
        outline, size = await run_in_thread(SNAPSHOT_LOADS, tenant, decode_outline, stored)
        self.loaded += 1
        return DocumentIndex(outline, size)

    def _evict(self, newest: _Key) -> None:
        """Drop the oldest outlines of the tenant down to its share, then the oldest of all tenants; never `newest`."""
        sizes = {key: entry.api.size for key, entry in self._entries.items() if entry.api is not None}
        self._drop_oldest(
            {key: size for key, size in sizes.items() if key[0] == newest[0]}, newest, share_of(self._room)
        )
        self._drop_oldest({key: size for key, size in sizes.items() if key in self._entries}, newest, self._room)

    def _drop_oldest(self, sizes: Mapping[_Key, int], newest: _Key, room: int) -> None:
        total_size = sum(sizes.values())
        for key, size in sizes.items():
            if total_size <= room:
                return
            if key != newest:
                total_size -= size
                del self._entries[key]
