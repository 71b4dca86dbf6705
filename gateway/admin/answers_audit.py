"""What the REST face answers when an audit trail was verified."""

from collections.abc import Sequence
from typing import Annotated, Self

from pydantic import Field

from gateway.admin.answers import Shown
from gateway.domain.audit import Chain, ChainFault, ChainFaultKind


class ChainFaultShown(Shown):
    """A place of a chain that is not as it was written."""

    kind: ChainFaultKind
    number: Annotated[
        int,
        Field(description="The entry that was changed, the first that is missing, or the last that should be there."),
    ]
    entry: Annotated[str | None, Field(description="The entry where it shows; null when the end is missing.")]

    @classmethod
    def of(cls, fault: ChainFault) -> Self:
        """The fault as it is shown."""
        return cls(kind=fault.kind, number=fault.number, entry=fault.entry)


class ChainShown(Shown):
    """What one writer has written of the trail."""

    writer: Annotated[
        str,
        Field(
            description="`catalog` for changes; for calls, one connection of a replica. A name that begins with "
            "`heads:` is of signatures, which say where the other chains stood."
        ),
    ]
    entries: int
    first: Annotated[int, Field(description="The number of its first entry.")]
    last: Annotated[int, Field(description="The number of its last entry.")]
    head: Annotated[str, Field(description="The MAC of its last entry, in hexadecimal; it stands for all of them.")]
    ok: bool
    faults: Annotated[int, Field(description="How many were found.")]
    fault: Annotated[ChainFaultShown | None, Field(description="The first of them; null when there is none.")]

    @classmethod
    def of(cls, chain: Chain) -> Self:
        """The chain as it is shown."""
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


class TrailVerified(Shown):
    """Whether the tenant's audit trail is as it was written."""

    ok: Annotated[bool, Field(description="Whether no chain has a fault.")]
    entries: int
    writers: Sequence[ChainShown]

    @classmethod
    def of(cls, chains: Sequence[Chain]) -> Self:
        """The result as it is shown."""
        return cls(
            ok=all(chain.is_whole for chain in chains),
            entries=sum(chain.entries for chain in chains if not chain.is_of_signatures),
            writers=[ChainShown.of(chain) for chain in chains],
        )
