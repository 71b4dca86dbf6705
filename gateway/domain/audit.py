"""What was done, by whom, with what outcome."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

import msgspec

from gateway.domain.identifiers import AuditId, TenantId
from gateway.domain.tenancy.policy import Levels


class AuditKind(StrEnum):
    """What an audit entry speaks of."""

    CALL_INTENT = "call.intent"
    CALL = "call"
    CHANGE = "change"
    BREAK = "break"
    """A writer of changes did not find the entry that its own has to follow."""


class CallRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One step of a call, as the audit trail keeps it: arguments only as a digest.

    `action` is what was asked for: `call` a tool, `read` a resource, `get` a prompt, `complete` a value, or `confirm`
    any of them by the user; `tool` is the name or URI of the primitive.
    """

    tenant: TenantId
    kind: AuditKind
    principal: str
    subject: str
    tool: str
    outcome: str
    correlation_id: str
    digest: bytes = b""
    status: int | None = None
    duration_us: int = 0
    result_bytes: int = 0
    action: str = "call"
    levels: Levels | None = None
    """Declared and assessed level of a primitive whose tenant declared another than was assessed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One row of the trail as it is read back."""

    id: AuditId
    at: datetime
    kind: AuditKind
    principal: str
    action: str
    target: str
    outcome: str
    correlation_id: str
    detail: dict[str, object] = field(default_factory=dict[str, object])


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilter:
    """Which entries of a trail are wanted; every member that is set narrows, `until` excludes its moment."""

    kind: AuditKind | None = None
    principal: str | None = None
    tool: str | None = None
    since: datetime | None = None
    until: datetime | None = None


SIGNERS = "heads:"
"""What the names of chains of signatures begin with: they say where the other chains stood."""


class ChainFaultKind(StrEnum):
    """What is wrong with a chain of the trail."""

    CHANGED = "changed"
    MISSING = "missing"
    SHORTENED = "shortened"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainFault:
    """A place of a chain that is not as it was written.

    `number` is the entry that was changed, the first of those that are missing, the last that should be there, or the
    entry that records a break.
    """

    kind: ChainFaultKind
    number: int
    entry: AuditId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """What one writer has written of a tenant's trail, after it was verified; `head` stands for all of it."""

    writer: str
    entries: int
    first: int
    last: int
    head: bytes
    faults: int = 0
    fault: ChainFault | None = None
    """The first of them."""

    @property
    def is_whole(self) -> bool:
        """Whether every entry follows from the one before, and none that was signed for is missing at the end."""
        return self.fault is None

    @property
    def is_of_signatures(self) -> bool:
        """Whether it is no part of the trail, but says where the trail's chains stood."""
        return self.writer.startswith(SIGNERS)


class AnchorKind(StrEnum):
    """Origin of the anchor of a trail."""

    CREATED = "created"
    """Together with the tenant."""
    ADOPTED = "adopted"
    """At the first signature of a tenant that is older than anchors: what was there then is trusted."""
    BROKEN = "broken"
    """In the place of one that was gone or forged."""


class AnchorState(StrEnum):
    """State of a trail's anchor, as verification found it."""

    CREATED = "created"
    ADOPTED = "adopted"
    PENDING = "pending"
    """None yet: the tenant is older than anchors and nothing was signed since."""
    MISSING = "missing"
    CHANGED = "changed"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """The anchor of a trail as it was found; `number` is the last signature that it names."""

    state: AnchorState
    number: int = 0
    at: datetime | None = None

    @property
    def is_whole(self) -> bool:
        """True if the trail begins at its anchor."""
        return self.state in {AnchorState.CREATED, AnchorState.ADOPTED, AnchorState.PENDING}


class HeadsState(StrEnum):
    """Result of the comparison with one store of heads outside the database."""

    MATCHED = "matched"
    EMPTY = "empty"
    """The store has no head of the tenant: nothing to compare."""
    REFUSED = "refused"
    """The store has only heads that no configured secret key has sealed: nothing to compare, and a reason to look."""
    UNREACHABLE = "unreachable"
    MISSING = "missing"
    """The database ends before the head of the store."""
    CHANGED = "changed"
    """The database has another signature of that number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadsCompared:
    """The comparison with one store; `number` is the newest signature compared, or the first that differs."""

    store: str
    state: HeadsState
    number: int = 0
    compared: int = 0
    refused: int = 0

    @property
    def is_contradicted(self) -> bool:
        """True if the store has a head that the database lacks."""
        return self.state in {HeadsState.MISSING, HeadsState.CHANGED}


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditTrail:
    """A tenant's trail after it was verified."""

    chains: Sequence[Chain]
    anchor: Anchor
    stores: Sequence[HeadsCompared] = ()

    @property
    def is_whole(self) -> bool:
        """True if database and stores show no change, insertion or deletion."""
        chains_hold = all(chain.is_whole for chain in self.chains)
        return chains_hold and self.anchor.is_whole and not any(store.is_contradicted for store in self.stores)
