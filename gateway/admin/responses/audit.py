"""Response models of the audit trail: entries, verification and exports."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from gateway.domain.audit import AuditEntry, AuditTrail
from gateway.web.kinds.annotations import shown_model
from gateway.web.models import CopiedModel, Page, ResponseModel

if TYPE_CHECKING:  # a derived class is no type for a checker
    EntryShown = CopiedModel
else:
    EntryShown = shown_model(AuditEntry)

TrailVerified = shown_model(AuditTrail, "Verified")


class EntryPage(Page[EntryShown]):
    """One page of a tenant's audit trail, newest first."""


class EntryExplained(ResponseModel):
    """An entry of the audit trail, and the rule that decided then."""

    entry: Annotated[EntryShown, Field(description="The entry.")]
    explanation: Annotated[str, Field(description="The outcome and the rule that decided, in words, from the entry.")]


class EntriesExplained(ResponseModel):
    """The explained entries, oldest first."""

    items: Annotated[Sequence[EntryExplained], Field(description="The entries, at most 50.")]


class ExportKeyShown(ResponseModel):
    """A public key of a tenant's exports."""

    id: Annotated[str, Field(description="The name of the key in `seal` lines: the beginning of the key's SHA-256.")]
    public: Annotated[str, Field(description="The Ed25519 public key, 32 bytes in hexadecimal.")]


class ExportKeysShown(ResponseModel):
    """The public keys of a tenant's exports."""

    tenant: Annotated[str, Field(description="The tenant's id, as in the lines of an export.")]
    keys: Annotated[
        Sequence[ExportKeyShown],
        Field(description="One public key for each secret key; the first one signs new exports."),
    ]


class ExportLine(ResponseModel):
    """One line of an export; docs/audit.md describes the members of each type."""

    type: Annotated[
        Literal["export", "head", "cut", "entry", "chain", "anchor", "end", "seal"],
        Field(description="`export` is the first line, `end` and a `seal` the last ones."),
    ]
