"""Response models of the versions of a source's document, and of the pending proposal."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Self

from pydantic import Field, RootModel

from gateway.admin.fields import CreatedAt, Name
from gateway.admin.responses.source_changes import ChangesShown
from gateway.admin.responses.sources import ImportTried
from gateway.domain.updates.source_versions import (
    ProposalOrigin,
    RefreshOutcome,
    SourceProposal,
    SourceVersion,
    VersionOrigin,
)
from gateway.web.models import Page, ResponseModel

_SHA256 = "SHA-256 of the document, in hexadecimal."


class VersionShown(ResponseModel):
    """A stored version of a source's document. An older release did not store the origin, the tools and the digest."""

    version: Annotated[int, Field(description="The version number; it is never reused.")]
    is_active: Annotated[bool, Field(description="True for the active version, whose tools clients receive.")]
    origin: Annotated[VersionOrigin | None, Field(description="`import`, `proposal` or `rollback`; null if unknown.")]
    restored: Annotated[int | None, Field(description="For a rollback, the version that it restored; otherwise null.")]
    tools: Annotated[int | None, Field(description="The number of tools in this version; null if unknown.")]
    digest: Annotated[str | None, Field(description=f"{_SHA256} Null if unknown.")]
    stored_bytes: Annotated[int, Field(description="The compressed size of the document in the database, in bytes.")]
    created_at: CreatedAt

    @classmethod
    def of(cls, version: SourceVersion) -> Self:
        """Build the response from a version."""
        return cls(
            version=version.number,
            is_active=version.is_active,
            origin=version.origin,
            restored=version.restored,
            tools=version.tools,
            digest=None if version.digest is None else version.digest.hex(),
            stored_bytes=version.stored_bytes,
            created_at=version.created_at,
        )


class VersionPage(Page[VersionShown]):
    """One page of a source's stored versions, the newest first."""


class ProposalShown(ResponseModel):
    """A new version of a source's document that is not activated or refused yet."""

    name: Name
    version: Annotated[int, Field(description="The version number to activate; each proposal has a number of its own.")]
    replaces: Annotated[int, Field(description="The active version that `changes` was computed against.")]
    origin: Annotated[
        ProposalOrigin,
        Field(description="`url`: found by a refresh from the source's URL; `upload`: sent through the API."),
    ]
    obstacle: Annotated[
        str | None, Field(description="The reason why activation would fail without changes; null if none is known.")
    ]
    tools: Annotated[int, Field(description="The number of tools in the proposed version.")]
    digest: Annotated[str, Field(description=_SHA256)]
    created_by: Annotated[
        str, Field(description="The principal that created the proposal; `gateway` for a refresh by the gateway.")
    ]
    created_at: Annotated[datetime, Field(description="The time at which the proposal was created.")]
    warnings: Annotated[Sequence[str], Field(description="Warnings about the document as a whole.")]
    changes: Annotated[ChangesShown, Field(description="The differences from the active version.")]

    @classmethod
    def of(cls, name: str, proposal: SourceProposal) -> Self:
        """Build the response from a proposal of the source of this name."""
        return cls(
            name=name,
            version=proposal.number,
            replaces=proposal.replaces,
            origin=proposal.origin,
            obstacle=proposal.obstacle,
            tools=proposal.tools,
            digest=proposal.digest.hex(),
            created_by=proposal.created_by,
            created_at=proposal.created_at,
            warnings=proposal.warnings,
            changes=ChangesShown.of(proposal.changes),
        )


class ProposalMade(RootModel[ProposalShown | ImportTried]):
    """A proposal, or the report of a dry run."""


class SourceRefreshed(ResponseModel):
    """The outcome of a refresh of a source."""

    name: Name
    outcome: Annotated[
        RefreshOutcome,
        Field(
            description="`unchanged`: the URL still has the active document. `proposed`: a proposal was stored. "
            "`activated`: the change was activated. `withdrawn`: the URL has the active document again, and the "
            "proposal was removed. `failed`: the document could not be read or may not be proposed."
        ),
    ]
    active_version: Annotated[int, Field(description="The number of the active version.")]
    proposal: Annotated[
        ProposalShown | None, Field(description="The pending proposal after the refresh; null if there is none.")
    ]
