"""Response models of audit trail verification."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import Field

from gateway.admin.fields import CreatedAt, Id, UpdatedAt
from gateway.admin.responses.models import CopiedModel, Page, ResponseModel
from gateway.domain.audit import (
    AnchorState,
    AuditTrail,
    Chain,
    ChainFaultKind,
    HeadsCompared,
    HeadsState,
    RetentionStatus,
    SinkKind,
    TrailSink,
)


class ChainFaultShown(CopiedModel):
    """A fault in a hash chain of the audit trail."""

    kind: Annotated[ChainFaultKind, Field(description="How the chain differs from what was written.")]
    number: Annotated[
        int,
        Field(
            description=""
            "The entry that was changed, the first that is missing, the last that should be there, or the record of a "
            "break."
        ),
    ]
    entry: Annotated[str | None, Field(description="The entry where it shows; null when the end is missing.")]


class ChainShown(ResponseModel):
    """The hash chain of one writer of the audit trail."""

    writer: Annotated[
        str,
        Field(
            description="`catalog` for changes; for calls, one connection of a replica. A name that begins with "
            "`heads:` is of signatures, which record the ends of the other chains."
        ),
    ]
    entries: Annotated[int, Field(description="How many entries the writer has in the trail.")]
    first: Annotated[int, Field(description="The number of its first entry.")]
    last: Annotated[int, Field(description="The number of its last entry.")]
    head: Annotated[str, Field(description="The MAC of its last entry, in hexadecimal; it covers all entries before.")]
    ok: Annotated[bool, Field(description="Whether the chain is as it was written.")]
    faults: Annotated[int, Field(description="How many were found.")]
    fault: Annotated[ChainFaultShown | None, Field(description="The first of them; null when there is none.")]
    cut: Annotated[int, Field(description="The number of the last entry that retention removed; 0 when none was.")]

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
            description="`created` with the tenant; `adopted` at the first signature of a tenant that is older than "
            "anchors, so what was there then is trusted; `pending` before that. `missing`, `changed` and `broken` are "
            "faults."
        ),
    ]
    number: Annotated[int, Field(description="The number of the newest signature that it names.")]
    at: Annotated[datetime | None, Field(description="When it was made; null when there is none that can be read.")]
    ok: Annotated[bool, Field(validation_alias="is_whole", description="Whether the trail begins where it should.")]


class HeadsComparedShown(ResponseModel):
    """The comparison of the audit trail with one store of chain heads outside the database."""

    store: Annotated[str, Field(description="`redis`, or the file or URL that the operator named.")]
    state: Annotated[
        HeadsState,
        Field(
            description="`matched`; `missing` and `changed` where the database lacks what the store has: faults. "
            "`empty`, `refused` (heads that no secret key of ours has sealed) and `unreachable`: nothing compared."
        ),
    ]
    number: Annotated[int, Field(description="The newest signature that was compared, or the first that differs.")]
    compared: Annotated[int, Field(description="How many heads the store has of this tenant.")]
    refused: Annotated[int, Field(description="How many it has besides that no secret key of ours has sealed.")]
    ok: Annotated[bool, Field(description="Whether the database has what the store has.")]

    @classmethod
    def of(cls, one: HeadsCompared) -> Self:
        """Build the response from a comparison."""
        return cls(
            store=one.store,
            state=one.state,
            number=one.number,
            compared=one.compared,
            refused=one.refused,
            ok=not one.is_contradicted,
        )


class TrailVerified(ResponseModel):
    """The result of verifying the tenant's audit trail."""

    ok: Annotated[bool, Field(description="Whether no chain, the anchor and no store outside shows a fault.")]
    entries: Annotated[int, Field(description="How many entries the trail has.")]
    removed: Annotated[int, Field(description="How many entries retention has removed, by signed records.")]
    anchor: Annotated[AnchorShown, Field(description="Where the trail begins.")]
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

    id: Annotated[str, Field(description="The name of the key in a seal: the beginning of its SHA-256.")]
    public: Annotated[str, Field(description="The Ed25519 public key, 32 bytes in hexadecimal.")]


class ExportKeysShown(ResponseModel):
    """The public keys of a tenant's exports."""

    tenant: Annotated[str, Field(description="The tenant's id, as in the lines of an export.")]
    keys: Annotated[Sequence[ExportKeyShown], Field(description="One for each secret key; the first signs.")]


class ExportLine(ResponseModel):
    """One line of an export; docs/audit.md describes the members of each type."""

    type: Annotated[
        Literal["export", "head", "cut", "entry", "chain", "anchor", "end", "seal"],
        Field(description="`export` is the first line, `end` and a `seal` the last ones."),
    ]


class SinkShown(ResponseModel):
    """A sink of the tenant's audit trail, and its progress."""

    id: Id
    name: Annotated[str, Field(description="Unique in the tenant.")]
    kind: Annotated[SinkKind, Field(description="The kind of the sink.")]
    target: Annotated[str, Field(description="Where entries go.")]
    credential: Annotated[str | None, Field(description="The name of the stored credential that is sent; null: none.")]
    enabled: Annotated[bool, Field(description="Whether entries are delivered.")]
    delivered: Annotated[int, Field(description="How many entries were delivered, repetitions not counted.")]
    delivered_at: Annotated[datetime | None, Field(description="When the last of them were.")]
    waiting_since: Annotated[
        datetime | None,
        Field(description="The time of the oldest entry that waits; null when none does, and in lists."),
    ]
    failures: Annotated[int, Field(description="How many deliveries in a row failed; then they are made less often.")]
    fault: Annotated[str | None, Field(description="Why the last delivery failed.")]
    created_at: CreatedAt
    updated_at: UpdatedAt

    @classmethod
    def of(cls, sink: TrailSink) -> Self:
        """Build the response from a sink."""
        return cls(
            id=sink.id,
            name=sink.name,
            kind=sink.kind,
            target=sink.target,
            credential=sink.credential,
            enabled=sink.enabled,
            delivered=sink.status.delivered,
            delivered_at=sink.status.delivered_at,
            waiting_since=sink.status.waiting_since,
            failures=sink.status.failures,
            fault=sink.status.fault,
            created_at=sink.created_at,
            updated_at=sink.updated_at,
        )


class RemovableShown(CopiedModel):
    """Entries that a cut would remove now."""

    entries: Annotated[int, Field(description="How many; counted up to about 100,000.")]
    chains: Annotated[int, Field(description="How many writers they have.")]
    oldest: Annotated[datetime | None, Field(description="The time of the oldest; null when there is none.")]
    newest: Annotated[datetime | None, Field(description="The time of the newest.")]
    is_partial: Annotated[bool, Field(description="Whether there are more than were counted.")]
    held_by: Annotated[
        Sequence[str], Field(description="Enabled sinks that have not received some older entries, which stay.")
    ]


class RetentionShown(ResponseModel):
    """The time for which the tenant's audit entries are kept, and what was and would be removed."""

    days: Annotated[int | None, Field(description="Older entries are removed; null: none.")]
    minimum_days: Annotated[int, Field(description="The shortest retention that the operator permits.")]
    removed: Annotated[int, Field(description="How many entries were removed so far.")]
    cut_at: Annotated[datetime | None, Field(description="When the last of them were.")]
    fault: Annotated[str | None, Field(description="Why the last cut left a chain alone; null when it did not.")]
    removable: Annotated[RemovableShown, Field(description="What a cut would remove now, under `?days` if given.")]

    @classmethod
    def of(cls, status: RetentionStatus) -> Self:
        """Build the response from the state of a retention."""
        return cls(
            days=status.retention.days,
            minimum_days=status.minimum_days,
            removed=status.removed,
            cut_at=status.cut_at,
            fault=status.retention.fault,
            removable=RemovableShown.of(status.removable),
        )


class SinkPage(Page[SinkShown]):
    """One page of a tenant's sinks."""
