"""Response models of audit trail verification."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Self

from pydantic import Field

from gateway.admin.responses.models import CopiedModel, ResponseModel
from gateway.domain.audit import (
    AnchorState,
    AuditTrail,
    Chain,
    ChainFaultKind,
    HeadsCompared,
    HeadsState,
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
            anchor=AnchorShown.of(trail.anchor),
            stores=[HeadsComparedShown.of(one) for one in trail.stores],
            writers=[ChainShown.of(chain) for chain in trail.chains],
        )
