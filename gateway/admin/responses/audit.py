"""Response models of the audit trail: verification and exports."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import Field

from gateway.admin.responses.models import EntryShown
from gateway.domain.audit import (
    AnchorState,
    AuditTrail,
    Chain,
    ChainFaultKind,
    HeadsCompared,
    HeadsState,
)
from gateway.web.models import CopiedModel, ResponseModel


class EntryExplained(ResponseModel):
    """An entry of the audit trail, and the rule that decided then."""

    entry: Annotated[EntryShown, Field(description="The entry.")]
    explanation: Annotated[str, Field(description="The outcome and the rule that decided, in words, from the entry.")]


class EntriesExplained(ResponseModel):
    """The explained entries, oldest first."""

    items: Annotated[Sequence[EntryExplained], Field(description="The entries, at most 50.")]


class ChainFaultShown(CopiedModel):
    """A fault in a hash chain of the audit trail."""

    kind: Annotated[ChainFaultKind, Field(description="The kind of the fault.")]
    number: Annotated[
        int,
        Field(
            description="The number of the changed entry, of the first missing entry, of the expected last entry, or "
            "of the record of a break."
        ),
    ]
    entry: Annotated[
        str | None,
        Field(description="The id of the entry that shows the fault; null if the end of the chain is missing."),
    ]


class ChainShown(ResponseModel):
    """The hash chain of one writer of the audit trail."""

    writer: Annotated[
        str,
        Field(
            description="The writer: `catalog` for changes; for calls, one connection of a replica. A name with the "
            "prefix `heads:` is a chain of signatures over the ends of the other chains."
        ),
    ]
    entries: Annotated[int, Field(description="The number of entries of this writer.")]
    first: Annotated[int, Field(description="The number of the writer's first entry.")]
    last: Annotated[int, Field(description="The number of the writer's last entry.")]
    head: Annotated[
        str, Field(description="The MAC of the last entry, in hexadecimal; it covers all previous entries.")
    ]
    ok: Annotated[bool, Field(description="True if the chain has no fault.")]
    faults: Annotated[int, Field(description="The number of faults.")]
    fault: Annotated[ChainFaultShown | None, Field(description="The first fault; null without faults.")]
    cut: Annotated[int, Field(description="The number of the last entry that retention removed; 0 if none.")]

    @classmethod
    def of(cls, chain: Chain) -> Self:
        """Build the response from a chain."""
        return cls(
            writer=chain.writer,
            entries=chain.entries,
            first=chain.first,
            last=chain.last,
            head=chain.head.hex(),
            ok=chain.is_whole,
            faults=chain.faults,
            fault=None if chain.fault is None else ChainFaultShown.of(chain.fault),
            cut=chain.cut,
        )


class AnchorShown(CopiedModel):
    """The anchor: the beginning of the audit trail and its newest signature."""

    state: Annotated[
        AnchorState,
        Field(
            description="`created`: created with the tenant. `adopted`: created with the first signature of a tenant "
            "that is older than anchors; its earlier entries are trusted. `pending`: not created yet. `missing`, "
            "`changed` and `broken` are faults."
        ),
    ]
    number: Annotated[int, Field(description="The number of the newest signature in the anchor.")]
    at: Annotated[datetime | None, Field(description="The time at which the anchor was created; null if unreadable.")]
    ok: Annotated[bool, Field(validation_alias="is_whole", description="True if the anchor has no fault.")]


class HeadsComparedShown(ResponseModel):
    """The comparison of the audit trail with one store of chain heads outside the database."""

    store: Annotated[str, Field(description="The store: `redis`, or the configured file or URL.")]
    state: Annotated[
        HeadsState,
        Field(
            description="`matched`: no difference. `missing` and `changed`: faults: the database lacks heads of the "
            "store, or has different ones. `empty`, `unreachable`, and `refused` (no configured secret key "
            "decrypts the heads): nothing was compared."
        ),
    ]
    number: Annotated[
        int, Field(description="The number of the newest compared signature, or of the first that differs.")
    ]
    compared: Annotated[int, Field(description="The number of heads of this tenant in the store.")]
    refused: Annotated[int, Field(description="The number of further heads that no configured secret key decrypts.")]
    ok: Annotated[bool, Field(description="True if the database has all heads of the store.")]

    @classmethod
    def of(cls, compared: HeadsCompared) -> Self:
        """Build the response from a comparison."""
        return cls(
            store=compared.store,
            state=compared.state,
            number=compared.number,
            compared=compared.compared,
            refused=compared.refused,
            ok=not compared.is_contradicted,
        )


class TrailVerified(ResponseModel):
    """The result of verifying the tenant's audit trail."""

    ok: Annotated[bool, Field(description="True if the chains, the anchor and the stores show no fault.")]
    entries: Annotated[int, Field(description="The number of entries in the trail.")]
    removed: Annotated[
        int, Field(description="The number of entries that retention removed, according to signed records.")
    ]
    anchor: Annotated[AnchorShown, Field(description="The anchor of the trail.")]
    stores: Annotated[
        Sequence[HeadsComparedShown], Field(description="One comparison for each store of heads outside the database.")
    ]
    writers: Annotated[Sequence[ChainShown], Field(description="One chain for each writer of the trail.")]

    @classmethod
    def of(cls, trail: AuditTrail) -> Self:
        """Build the response from a verified audit trail."""
        return cls(
            ok=trail.is_whole,
            entries=sum(chain.entries for chain in trail.chains if not chain.is_of_signatures),
            removed=sum(chain.cut for chain in trail.chains),
            anchor=AnchorShown.of(trail.anchor),
            stores=[HeadsComparedShown.of(one) for one in trail.stores],
            writers=[ChainShown.of(chain) for chain in trail.chains],
        )


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
