"""Reports of an attached source, collected until the gateway handles them."""

import time
from dataclasses import dataclass, field

import anyio

from gateway.domain.members.limits import MAX_URL_LENGTH
from gateway.jobs.live.limits import DEBOUNCE_S, MAX_NOTICES, MAX_UPDATES


@dataclass(slots=True)
class SourceReports:
    """The reports of an attachment since the last call of `next`; implements `LiveListener`."""

    has_news: anyio.Event = field(default_factory=anyio.Event)
    has_changed: bool = False
    updates: set[str] = field(default_factory=set[str])
    notices: dict[str, None] = field(default_factory=dict[str, None])
    """Faults of the source, which the next discovery adds to its own."""

    def changed(self) -> None:
        """Record that the list of primitives has changed."""
        self.has_changed = True
        self.has_news.set()

    def updated(self, uri: str) -> None:
        """Record a changed resource, up to the limit."""
        if len(self.updates) < MAX_UPDATES and len(uri) <= MAX_URL_LENGTH:
            self.updates.add(uri)
            self.has_news.set()

    def noticed(self, notice: str) -> None:
        """Record a fault, up to the limit; the list is read again, so that the admin sees it."""
        if notice not in self.notices and len(self.notices) < MAX_NOTICES:
            self.notices[notice] = None
            self.changed()

    async def next(self, *, rest_s: float, due_s: float) -> tuple[bool, set[str]]:
        """Wait for reports; return True if the list has changed, and the URIs of changed resources.

        A changed list is returned after `rest_s` seconds at the earliest. Without any report, the wait ends after
        `due_s` seconds.
        """
        now = time.monotonic()
        rests_until, due_at = now + rest_s, now + due_s
        while True:
            with anyio.move_on_after(max((rests_until if self.has_changed else due_at) - time.monotonic(), 0)):
                await self.has_news.wait()
            await anyio.sleep(DEBOUNCE_S)
            self.has_news, updates, self.updates = anyio.Event(), self.updates, set()
            now = time.monotonic()
            has_changed = self.has_changed and now >= rests_until
            if has_changed:
                self.has_changed = False
            if has_changed or updates or now >= due_at:
                return has_changed, updates
