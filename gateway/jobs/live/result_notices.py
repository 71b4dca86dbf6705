"""Notices about results of live sources, stored in the status of the source.

A replica stores each at most once in ten minutes.
"""

import time

import structlog

from gateway.catalog.live.attachments import add_notice
from gateway.domain.fairness.bounded_cache import BoundedCache
from gateway.domain.identifiers import LiveSourceId
from gateway.domain.live_sources import LiveSource
from gateway.errors import Unavailable
from gateway.jobs.live.limits import MAX_KNOWN_NOTICES, NOTICE_REPEAT_S
from gateway.store.engine import Store

log = structlog.get_logger(__name__)


class ResultNotices:
    """The notices that this replica has stored."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known = BoundedCache[tuple[LiveSourceId, str], float](MAX_KNOWN_NOTICES)

    def is_new(self, source: LiveSource, text: str) -> bool:
        """True if the notice was not stored lately; it then counts as stored."""
        key, now = (source.id, text), time.monotonic()
        if now - self._known.get(key, -NOTICE_REPEAT_S) < NOTICE_REPEAT_S:
            return False
        self._known[key] = now
        return True

    async def store(self, source: LiveSource, text: str) -> None:
        """Add a notice to the status of the source, unless the status has it or is full."""
        try:
            await add_notice(source.tenant, self._store, source.id, text)
        except Unavailable as error:
            log.warning("live_notice_not_stored", live_source=source.name, reason=error.message)
