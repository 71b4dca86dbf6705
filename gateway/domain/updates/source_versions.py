"""Versions of a source's document: stored versions, the pending proposal, and the state of refreshes from its URL."""

from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from gateway.domain.identifiers import SourceId
from gateway.domain.updates.source_changes import ImportChanges
from gateway.domain.updates.watches import Sighting


class RefreshPolicy(StrEnum):
    """Rule for changes that a refresh of a source finds."""

    MANUAL = "manual"
    """A person activates every proposal."""
    ADDITIONS = "additions"
    """Tools that are only new, or wider without new text, are activated at once, unless text is suspicious."""


class RefreshOutcome(StrEnum):
    """Outcome of a refresh of a source."""

    UNCHANGED = "unchanged"
    PROPOSED = "proposed"
    ACTIVATED = "activated"
    WITHDRAWN = "withdrawn"
    """The URL has the active document again, so the proposal was removed."""
    FAILED = "failed"
    """The document could not be read or may not be proposed; nothing has changed."""


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
    """The last refreshes of a source, and the time of the next; `proposal` is the number of the pending proposal."""

    seen: Sighting = field(default_factory=Sighting)
    next_at: datetime | None = None
    proposal: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceVersion:
    """One stored version of a source's document; `stored_bytes` is its size in the database.

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
    """A version of a source that waits for a decision; at most one for each source.

    `replaces` is the active version that it was compared with; it can be activated only while that version is active.
    `obstacle` is the reason why a rule did not activate it.
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
    """State of a source's refreshes.

    `seen` belongs to `url`. `last_number` is the highest number that a version or a proposal ever had. A document with
    the digest `refused_digest` is not proposed again, and one with `reported_digest` is not reported again. A replica
    holds the lease until `leased_until`; `is_wanted` is True if another refresh is due after it.
    """

    url: str | None = None
    seen: Sighting = field(default_factory=Sighting)
    last_number: int = 0
    refused_digest: bytes | None = field(default=None, repr=False)
    reported_digest: bytes | None = field(default=None, repr=False)
    leased_until: datetime | None = None
    is_wanted: bool = False

    def with_content_unseen(self) -> "RefreshState":
        """The state in which the next refresh compares the document again, regardless of earlier results."""
        return replace(self, seen=replace(self.seen, etag=None, last_modified=None, digest=None))
