"""Outbound webhooks of a tenant, their deliveries, and the events that they report."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Annotated, ClassVar

from gateway.domain.calls.approvals import Approval
from gateway.domain.identifiers import DeliveryId, TenantId, WebhookEndpointId
from gateway.domain.members.markers import About, Length, Option, Shape, StoredAs
from gateway.domain.members.secret import SecretStatus
from gateway.domain.members.values import Url
from gateway.domain.tenancy.recorded_fields import Omitted
from gateway.domain.updates.limits import MAX_TEXT_LENGTH, MAX_WARNINGS
from gateway.domain.updates.source_changes import Impact
from gateway.domain.updates.source_versions import SourceProposal

TEST_KIND = "webhook_endpoint.test"
"""Kind of the test event that an admin can send; every endpoint receives it."""


class WebhookEventKind(StrEnum):
    """Events that an endpoint can choose."""

    APPROVAL_REQUESTED = "approval.requested"
    APPROVAL_APPROVED = "approval.approved"
    APPROVAL_DENIED = "approval.denied"
    APPROVAL_EXPIRED = "approval.expired"
    APPROVAL_RAN = "approval.ran"
    APPROVAL_UNKNOWN = "approval.unknown"
    SOURCE_PROPOSED = "source.proposed"
    CONFIGURATION_DRIFTED = "configuration.drifted"


_DEFAULT_KINDS = tuple(kind for kind in WebhookEventKind if kind is not WebhookEventKind.CONFIGURATION_DRIFTED)
"""Replicas of the previous release cannot read an endpoint with the kind `configuration.drifted`."""


class DeliveryState(StrEnum):
    """State of a delivery. A replay makes any of them pending again."""

    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointStatus(SecretStatus):
    """The state of an endpoint. An attempt that succeeds, and a change by an admin, end a run of failures."""

    notice: Annotated[
        str | None,
        About("The reason why the gateway disabled the endpoint or dropped events; null if it did neither."),
        Shape.LISTED,
        Shape.RESET,
    ] = None
    failures: Annotated[
        Omitted[int], About("The number of consecutive failed attempts."), Shape.LISTED, Shape.RESET
    ] = 0
    failing_since: Annotated[
        Omitted[datetime | None], About("The time of the first of these failures; null if there is none."), Shape.RESET
    ] = None
    held_until: Annotated[Omitted[datetime | None], Shape.RESET] = None
    """No attempt is made before this time."""
    old_secret_until: Annotated[
        datetime | None,
        About("The time until which the previous secret also signs; null if there is none."),
        StoredAs("retires_at"),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboundWebhook:
    """An endpoint of the tenant's own systems that receives signed events."""

    id: WebhookEndpointId
    name: str
    url: Annotated[
        Url,
        About("The https URL that receives events by POST."),
        Option(name="send-to", is_argument=True),
        Shape.LISTED,
    ]
    kinds: Annotated[
        tuple[WebhookEventKind, ...],
        Length(least=1, most=len(WebhookEventKind)),
        Shape.DISTINCT,
        About("The kinds of events to send; default: all but `configuration.drifted`."),
        Option(name="kind"),
    ] = _DEFAULT_KINDS
    description: Annotated[str, Length(most=500), About("The description, for people.")] = ""
    enabled: Annotated[
        bool, About("False pauses delivery: new events are dropped, and queued deliveries wait."), Shape.LISTED
    ] = True
    version: int = 1
    created_at: datetime
    updated_at: datetime
    status: EndpointStatus = EndpointStatus()


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboundDelivery:
    """A delivery in a list, without its payload."""

    stem: ClassVar[str] = "WebhookDelivery"
    id: Annotated[DeliveryId, About("The id, which is the `webhook-id` of all attempts.")]
    endpoint: Annotated[WebhookEndpointId, StoredAs("endpoint_id")]
    kind: Annotated[str, About("The kind of the event.")]
    payload: bytes = field(repr=False)
    """The exact bytes of the body."""
    state: Annotated[DeliveryState, About("The state: waiting, delivered or failed.")]
    due_at: Annotated[datetime, About("The time of the next attempt; for an ended delivery, the time of its deletion.")]
    expires_at: Annotated[datetime, About("The time after which no attempt is made.")]
    created_at: Annotated[datetime, About("The time of creation.")]
    attempts: Annotated[int, About("The number of attempts since creation or the last replay.")] = 0
    status: Annotated[int | None, About("The HTTP status of the last attempt; null without a response.")] = None
    error: Annotated[str | None, About("The reason why the last attempt failed; null if it succeeded.")] = None
    attempted_at: Annotated[datetime | None, About("The time of the last attempt.")] = None
    ended_at: Annotated[datetime | None, About("The time at which the delivery succeeded or finally failed.")] = None


def describe_approval(approval: Approval, *, url: str) -> Mapping[str, object]:
    """The payload of an event about an approval, without arguments, headers, body or credentials.

    `url` is the page on which a person decides. The lengths of strings are limited.
    """
    return {
        "id": approval.id,
        "tenant": approval.tenant,
        "state": approval.state,
        "tool": approval.tool,
        "action": approval.action,
        "profile": approval.profile,
        "requester": _bounded(approval.requester),
        "subject": _bounded(approval.subject),
        "warnings": [_bounded(warning) for warning in approval.warnings[:MAX_WARNINGS]],
        "created_at": approval.created_at,
        "expires_at": approval.expires_at,
        "decided_by": None if approval.decided_by is None else _bounded(approval.decided_by),
        "decided_at": approval.decided_at,
        "outcome": approval.outcome,
        "url": url,
    }


def describe_proposal(proposal: SourceProposal, *, tenant: TenantId, name: str) -> Mapping[str, object]:
    """The payload of an event about a proposal: numbers and kinds, without any text of the document."""
    changes = proposal.changes
    return {
        "source": proposal.source,
        "name": name,
        "tenant": tenant,
        "version": proposal.number,
        "replaces": proposal.replaces,
        "origin": proposal.origin,
        "sensitive": sorted({one.kind for one in changes.sensitive}),
        "added": len(changes.added),
        "removed": len(changes.removed),
        "renamed": len(changes.renamed),
        "changed": len(changes.changed),
        "breaking": changes.count(Impact.BREAKING),
        "findings": len(changes.findings),
        "created_by": _bounded(proposal.created_by),
        "created_at": proposal.created_at,
    }


def _bounded(text: str) -> str:
    return text if len(text) <= MAX_TEXT_LENGTH else text[: MAX_TEXT_LENGTH - 1] + "…"
