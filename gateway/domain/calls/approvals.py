"""Approvals: decisions by a person on one call of another person, bound to the exact request."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, ClassVar
from unicodedata import normalize

from gateway.domain.identifiers import ApprovalId, KeyId, TenantId
from gateway.domain.members.markers import About, Shape, ShownAs, StoredAs
from gateway.domain.order import join_position, write_moment


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
    """The final request of a call, without credentials; each field is truncated to a fixed length."""

    stem: ClassVar[str] = "Request"
    method: Annotated[str, About("The HTTP method; empty if the call is not a single request.")]
    url: Annotated[str, About("The URL, or the name of the tool.")]
    headers: Annotated[tuple[tuple[str, str], ...], About("The headers, without credentials.")] = ()
    body: Annotated[str, About("The body, or the arguments as JSON.")] = ""
    """The canonical arguments, if the call is not a single request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """The approval of one call of one subject."""

    id: Annotated[ApprovalId, About("The id; it never changes."), Shape.LISTED]
    tenant: Annotated[TenantId, StoredAs("tenant_id")]
    state: Annotated[ApprovalState, About("The state; only a pending approval can be decided."), Shape.LISTED]
    action: Annotated[str, About("`call` a tool, `read` a resource or `get` a prompt.")]
    tool: Annotated[str, About("The name or URI of the primitive."), Shape.LISTED]
    profile: Annotated[str | None, About("The profile at whose URL the call was made.")]
    requester: Annotated[str, About("The key that made the call.")]
    subject: Annotated[str, About("The subject of that key; only another subject can decide."), Shape.LISTED]
    key: Annotated[KeyId, StoredAs("key_id")]
    request: Annotated[RequestShown, About("The request that the call sends.")]
    """Stored encrypted."""
    warnings: Annotated[tuple[str, ...], About("Warnings about the effects of the call.")]
    digest: bytes
    """Covers the prepared call."""
    tool_digest: Annotated[str, About("Digest of the tool's definition and handler.")]
    policy_version: Annotated[int, About("The version of the policy that requires the approval.")]
    correlation_id: Annotated[str, About("The correlation id of the requesting call.")]
    created_at: Annotated[datetime, About("The time of creation."), Shape.LISTED]
    expires_at: Annotated[
        datetime,
        About("The deadline of the decision; after an approval, the deadline of the call."),
        Shape.LISTED,
    ]
    decided_by: Annotated[
        str | None, About("The key or operator that decided; null before a decision."), Shape.LISTED
    ] = None
    decider_subject: str | None = None
    decided_at: Annotated[datetime | None, About("The time of the decision.")] = None
    comment: Annotated[str, About("The reason given with the decision.")] = ""
    started_at: Annotated[datetime | None, About("The time at which the approved call started.")] = None
    ended_at: Annotated[datetime | None, About("The time at which the approved call, or the approval, ended.")] = None
    outcome: Annotated[str | None, About("The outcome of the approved call, as in the audit trail.")] = None
    version: int = 1

    @property
    def digest_text(
        self,
    ) -> Annotated[str, ShownAs("digest"), About("Digest of the exact call, in hexadecimal digits.")]:
        """The digest in hexadecimal digits."""
        return self.digest.hex()

    @property
    def position(self) -> str:
        """The position in the list of approvals."""
        return join_position(write_moment(self.created_at), self.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalFilter:
    """Filter for the approvals of a tenant; all set members must match."""

    state: ApprovalState | None = None
    tool: str | None = None
    subject: str | None = None
