"""Resources whose contents come from a URL that the gateway looks at from time to time."""

from dataclasses import dataclass, field
from datetime import datetime

from gateway.domain.identifiers import WatchId


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """What was seen at the URL, and how the last looks went.

    `digest` is of the last whole body; `failures` counts looks in a row that saw none, `fault` says why.
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
    """Look at the URL every so many seconds; when something else stands there, the resource has changed."""

    id: WatchId
    uri: str
    url: str
    interval_s: int
    credential: str | None
    version: int
    created_at: datetime
    updated_at: datetime
    seen: Sighting = Sighting()
