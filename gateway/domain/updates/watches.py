"""Watches: resources whose URL the gateway polls for changes."""

from dataclasses import dataclass, field
from datetime import datetime

from gateway.domain.identifiers import WatchId
from gateway.domain.tenancy.recorded_fields import Omitted


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """State of the URL at the last successful poll, and the outcome of the latest polls.

    `digest` is the digest of the last complete body. `failures` counts consecutive failed polls; `fault` is the reason.
    """

    etag: str | None = None
    last_modified: str | None = None
    digest: bytes | None = field(default=None, repr=False)
    failures: int = 0
    fault: str | None = None
    checked_at: datetime | None = None
    changed_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """Polling of a URL every `interval_s` seconds. A different body means that the resource at `uri` has changed."""

    id: WatchId
    uri: str
    url: str
    interval_s: int
    credential: str | None
    version: int
    created_at: datetime
    updated_at: datetime
    seen: Omitted[Sighting] = Sighting()
