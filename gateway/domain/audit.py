"""What was done, by whom, with what outcome."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from gateway.domain.identifiers import AuditId, TenantId


class AuditKind(StrEnum):
    """What an audit entry speaks of."""

    CALL_INTENT = "call.intent"
    CALL = "call"
    CHANGE = "change"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRecord:
    """One step of a tool call, as the audit trail keeps it: arguments only as a digest."""

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
