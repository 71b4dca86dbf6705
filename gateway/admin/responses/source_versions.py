"""Response models of the versions of a source's document, and of the pending proposal."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Self

from pydantic import Field, RootModel

from gateway.admin.fields import CreatedAt, Name
from gateway.admin.responses.models import Page, ResponseModel
from gateway.admin.responses.source_changes import ChangesShown
from gateway.admin.responses.sources import ImportTried
from gateway.domain.updates.source_versions import (
    ProposalOrigin,
    RefreshOutcome,
    SourceProposal,
    SourceVersion,
    VersionOrigin,
)

_SHA256 = "SHA-256 of the document, in hexadecimal."


class VersionShown(ResponseModel):
    """A stored version of a source's document."""

    version: Annotated[int, Field(description="The number; it is never used again.")]
    is_active: Annotated[bool, Field(description="True if clients have its tools.")]
    origin: Annotated[
        VersionOrigin | None, Field(description="`import`, `proposal` or `rollback`; null if an older release made it.")
    ]
    restored: Annotated[int | None, Field(description="The version that a rollback restored.")]
    tools: Annotated[int | None, Field(description="The number of its tools; null if an older release made it.")]
    digest: Annotated[str | None, Field(description=f"{_SHA256} Null if an older release made it.")]
    stored_bytes: Annotated[int, Field(description="Its size in the database, compressed.")]
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
    """A version that waits until a person activates or refuses it."""

    name: Name
    version: Annotated[int, Field(description="The number to activate; another proposal has another number.")]
    replaces: Annotated[int, Field(description="The active version with which it was compared.")]
    origin: Annotated[ProposalOrigin, Field(description="`url`: a look found it; `upload`: it was sent.")]
    obstacle: Annotated[
        str | None, Field(description="The reason why it cannot be activated unchanged; null if none is known.")
    ]
    tools: Annotated[int, Field(description="The number of its tools.")]
    digest: Annotated[str, Field(description=_SHA256)]
    created_by: Annotated[str, Field(description="The principal that proposed it; `gateway` for looks.")]
    created_at: Annotated[datetime, Field(description="The time of the proposal.")]
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
        Field(description="`withdrawn`: the URL has the active document again, so the proposal is gone."),
    ]
    active_version: Annotated[int, Field(description="The number of the active version.")]
    proposal: Annotated[ProposalShown | None, Field(description="The proposal that waits now.")]
