"""Versions of a source's document: stored versions, the pending proposal, and the state of refreshes from its URL."""

from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Annotated, ClassVar

from gateway.domain.identifiers import SourceId
from gateway.domain.members.markers import About, ShownAs, StoredAs
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
    """A stored version of a source's document. An older release did not store the origin, the tools and the digest."""

    stem: ClassVar[str] = "Version"
    number: Annotated[int, ShownAs("version"), About("The version number; it is never reused.")]
    created_at: Annotated[datetime, About("The time of creation.")]
    stored_bytes: Annotated[int, About("The compressed size of the document in the database, in bytes.")]
    is_active: Annotated[bool, About("True for the active version, whose tools clients receive.")]
    digest: bytes | None = field(default=None, repr=False)
    tools: Annotated[int | None, About("The number of tools in this version; null if unknown.")] = None
    origin: Annotated[VersionOrigin | None, About("`import`, `proposal` or `rollback`; null if unknown.")] = None
    restored: Annotated[int | None, About("For a rollback, the version that it restored; otherwise null.")] = None

    @property
    def digest_text(
        self,
    ) -> Annotated[str | None, ShownAs("digest"), About("SHA-256 of the document, in hexadecimal. Null if unknown.")]:
        """The digest in hexadecimal digits."""
        return None if self.digest is None else self.digest.hex()


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceProposal:
    """A new version of a source's document that is not activated or refused yet."""

    stem: ClassVar[str] = "Proposal"
    source: Annotated[SourceId, StoredAs("source_id")]
    number: Annotated[
        int,
        ShownAs("version"),
        About("The version number to activate; each proposal has a number of its own."),
    ]
    replaces: Annotated[int, About("The active version that `changes` was computed against.")]
    """The proposal can be activated only while that version is active."""
    origin: Annotated[
        ProposalOrigin,
        About("`url`: found by a refresh from the source's URL; `upload`: sent through the API."),
    ]
    digest: bytes = field(repr=False)
    created_by: Annotated[
        str, About("The principal that created the proposal; `gateway` for a refresh by the gateway.")
    ]
    created_at: Annotated[datetime, About("The time at which the proposal was created.")]
    obstacle: Annotated[
        str | None, About("The reason why activation would fail without changes; null if none is known.")
    ] = None
    changes: Annotated[ImportChanges, About("The differences from the active version.")] = field(
        default_factory=ImportChanges
    )
    tools: Annotated[int, About("The number of tools in the proposed version.")] = 0
    warnings: Annotated[tuple[str, ...], About("Warnings about the document as a whole.")] = ()

    @property
    def digest_text(self) -> Annotated[str, ShownAs("digest"), About("SHA-256 of the document, in hexadecimal.")]:
        """The digest in hexadecimal digits."""
        return self.digest.hex()


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
