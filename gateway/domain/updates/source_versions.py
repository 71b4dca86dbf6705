"""Versions of a source's document: those that are kept, the proposal that waits, and the looks at the source's URL."""

from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from gateway.domain.identifiers import SourceId
from gateway.domain.updates.source_changes import ImportChanges
from gateway.domain.updates.watches import Sighting


class RefreshPolicy(StrEnum):
    """Rule for changes that a look at a source's URL finds."""

    MANUAL = "manual"
    """A person activates every proposal."""
    ADDITIONS = "additions"
    """Tools that are only new or wider are activated at once, if no text changes or is suspicious."""


class RefreshOutcome(StrEnum):
    """Outcome of a look at a source's URL."""

    UNCHANGED = "unchanged"
    PROPOSED = "proposed"
    ACTIVATED = "activated"
    WITHDRAWN = "withdrawn"
    """The URL has the active document again, so the proposal is gone."""
    FAILED = "failed"
    """The document was not read, or is none that may be proposed; nothing has changed."""


class VersionOrigin(StrEnum):
    """Origin of a version."""

    IMPORT = "import"
    PROPOSAL = "proposal"
    ROLLBACK = "rollback"


class ProposalOrigin(StrEnum):
    """Origin of a proposed document."""

    URL = "url"
    UPLOAD = "upload"


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshStatus:
    """The last looks at a source's URL, and the next one; `proposal` is the number of the proposal that waits."""

    seen: Sighting = field(default_factory=Sighting)
    next_at: datetime | None = None
    proposal: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceVersion:
    """One kept version of a source's document; `stored_bytes` is its size in the database.

    `digest`, `tools` and `origin` are None in versions of an older release. `restored` is the number of the version
    that a rollback restored.
    """

    number: int
    created_at: datetime
    stored_bytes: int
    is_active: bool
    digest: bytes | None = field(default=None, repr=False)
    tools: int | None = None
    origin: VersionOrigin | None = None
    restored: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceProposal:
    """A version of a source that waits for a decision; one for each source.

    `replaces` is the active version with which it was compared: it can be activated only while that version is active.
    `obstacle` is the reason for which a rule did not activate it.
    """

    source: SourceId
    number: int
    replaces: int
    origin: ProposalOrigin
    digest: bytes = field(repr=False)
    created_by: str
    created_at: datetime
    obstacle: str | None = None
    changes: ImportChanges = field(default_factory=ImportChanges)
    tools: int = 0
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshState:
    """State of the looks at a source's URL.

    `seen` belongs to `url`. `last_number` is the highest number that a version or a proposal ever had. A document with
    the digest `refused_digest` is not proposed again, and one with `reported_digest` is not reported again. A replica
    looks until `leased_until`; `is_wanted` is True if another look is due after it.
    """

    url: str | None = None
    seen: Sighting = field(default_factory=Sighting)
    last_number: int = 0
    refused_digest: bytes | None = field(default=None, repr=False)
    reported_digest: bytes | None = field(default=None, repr=False)
    leased_until: datetime | None = None
    is_wanted: bool = False

    def with_content_unseen(self) -> "RefreshState":
        """The state after which the next look compares the document again, whatever was seen before."""
        return replace(self, seen=replace(self.seen, etag=None, last_modified=None, digest=None))
