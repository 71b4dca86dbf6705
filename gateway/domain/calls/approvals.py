"""Approvals: decisions by a person on one call of another person, bound to the exact request."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from unicodedata import normalize

from gateway.domain.identifiers import ApprovalId, KeyId, TenantId


class ApprovalState(StrEnum):
    """State of an approval. Each arrow is one conditional update.

    pending → approved → running → done | unknown; pending → denied; pending or approved → expired or superseded.
    """

    PENDING = "pending"
    APPROVED = "approved"
    """A person approved the call; it runs when its caller calls again, or in its task."""
    DENIED = "denied"
    EXPIRED = "expired"
    SUPERSEDED = "superseded"
    """The tool, the policy or the owner of the credential changed, so the call needs another approval."""
    RUNNING = "running"
    """The call runs on a replica, under a lease."""
    DONE = "done"
    """The call ran, and its outcome is known; `outcome` is the word of the audit trail."""
    UNKNOWN = "unknown"
    """The replica stopped while the call ran. The call is never repeated."""


OPEN_STATES = frozenset({ApprovalState.PENDING, ApprovalState.APPROVED, ApprovalState.RUNNING})
"""States in which an equal call of the same subject attaches to the approval instead of creating another one."""


def is_same_subject(one: str, other: str) -> bool:
    """True if two subjects differ at most in spelling: case, width, composition, outer spaces, invisible characters."""
    return _folded(one) == _folded(other)


def _folded(subject: str) -> str:
    folded = normalize("NFKC", normalize("NFKC", subject).casefold())  # guard: approval-subject-spelling
    return "".join(character for character in folded if character.isprintable()).strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestShown:
    """The upstream request in the form that people see: without credentials, limited in size; stored encrypted.

    A call without a single upstream request has an empty method, the tool's name as its URL and its canonical arguments
    as its body.
    """

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    body: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """One approval; `digest` covers the prepared call, `tool_digest` the tool's definition and handler."""

    id: ApprovalId
    tenant: TenantId
    state: ApprovalState
    requester: str
    subject: str
    """Subject of the requester, which must differ from the approver's."""
    key: KeyId
    profile: str | None
    action: str
    """The kind of request, as in the audit trail: `call`, `read` or `get`."""
    tool: str
    tool_digest: str
    policy_version: int
    digest: bytes
    request: RequestShown
    warnings: tuple[str, ...]
    """Facts about what the call changes, in plain words."""
    correlation_id: str
    created_at: datetime
    expires_at: datetime
    decided_by: str | None = None
    decider_subject: str | None = None
    decided_at: datetime | None = None
    comment: str = ""
    started_at: datetime | None = None
    ended_at: datetime | None = None
    outcome: str | None = None
    version: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalFilter:
    """Filter for the approvals of a tenant; all set members must match."""

    state: ApprovalState | None = None
    tool: str | None = None
    subject: str | None = None
