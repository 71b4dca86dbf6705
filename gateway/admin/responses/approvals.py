"""Response models of approvals."""

from datetime import datetime
from typing import Annotated, Self

from pydantic import Field

from gateway.admin.fields import CreatedAt, Id
from gateway.domain.calls.approvals import Approval, ApprovalState, RequestShown
from gateway.web.models import Page, ResponseModel


class RequestToApprove(ResponseModel):
    """The final request of a call, without credentials; each field is truncated to a fixed length."""

    method: Annotated[str, Field(description="The HTTP method; empty if the call is not a single request.")]
    url: Annotated[str, Field(description="The URL, or the name of the tool.")]
    headers: Annotated[list[tuple[str, str]], Field(description="The headers, without credentials.")]
    body: Annotated[str, Field(description="The body, or the arguments as JSON.")]

    @classmethod
    def of(cls, request: RequestShown) -> Self:
        """Build the response from a request."""
        return cls(method=request.method, url=request.url, headers=list(request.headers), body=request.body)


class ApprovalShown(ResponseModel):
    """The approval of one call of one subject."""

    id: Id
    state: Annotated[ApprovalState, Field(description="The state; only a pending approval can be decided.")]
    action: Annotated[str, Field(description="`call` a tool, `read` a resource or `get` a prompt.")]
    tool: Annotated[str, Field(description="The name or URI of the primitive.")]
    profile: Annotated[str | None, Field(description="The profile at whose URL the call was made.")]
    requester: Annotated[str, Field(description="The key that made the call.")]
    subject: Annotated[str, Field(description="The subject of that key; only another subject can decide.")]
    request: Annotated[RequestToApprove, Field(description="The request that the call sends.")]
    warnings: Annotated[list[str], Field(description="Warnings about the effects of the call.")]
    digest: Annotated[str, Field(description="Digest of the exact call, in hexadecimal digits.")]
    tool_digest: Annotated[str, Field(description="Digest of the tool's definition and handler.")]
    policy_version: Annotated[int, Field(description="The version of the policy that requires the approval.")]
    correlation_id: Annotated[str, Field(description="The correlation id of the requesting call.")]
    created_at: CreatedAt
    expires_at: Annotated[
        datetime, Field(description="The deadline of the decision; after an approval, the deadline of the call.")
    ]
    decided_by: Annotated[str | None, Field(description="The key or operator that decided; null before a decision.")]
    decided_at: Annotated[datetime | None, Field(description="The time of the decision.")]
    comment: Annotated[str, Field(description="The reason given with the decision.")]
    started_at: Annotated[datetime | None, Field(description="The time at which the approved call started.")]
    ended_at: Annotated[
        datetime | None, Field(description="The time at which the approved call, or the approval, ended.")
    ]
    outcome: Annotated[str | None, Field(description="The outcome of the approved call, as in the audit trail.")]

    @classmethod
    def of(cls, approval: Approval) -> Self:
        """Build the response from an approval."""
        same = ("id", "state", "action", "tool", "profile", "requester", "subject", "tool_digest", "policy_version")
        times = ("created_at", "expires_at", "decided_at", "started_at", "ended_at")
        texts = ("correlation_id", "decided_by", "comment", "outcome")
        return cls(
            request=RequestToApprove.of(approval.request),
            warnings=list(approval.warnings),
            digest=approval.digest.hex(),
            **{name: getattr(approval, name) for name in (*same, *times, *texts)},
        )


class ApprovalPage(Page[ApprovalShown]):
    """One page of a tenant's approvals."""
