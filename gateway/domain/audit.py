"""What was done, by whom, with what outcome."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

import msgspec

from gateway.domain.identifiers import AuditId, TenantId
from gateway.domain.policy import Levels


class AuditKind(StrEnum):
    """What an audit entry speaks of."""

    CALL_INTENT = "call.intent"
    CALL = "call"
    CHANGE = "change"


class CallRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One step of a call, as the audit trail keeps it: arguments only as a digest.

    `action` is what was asked for: `call` a tool, `read` a resource, `get` a prompt or `complete` a value; `tool` is
    the name or URI of the primitive.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainFault:
    """A place of a chain that is not as it was written.

    `number` is the entry that was changed, the first of those that are missing, or the last that should be there.
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
