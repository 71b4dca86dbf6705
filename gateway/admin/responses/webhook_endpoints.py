"""Response models of outbound webhook endpoints and their deliveries."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import Field

from gateway.admin.fields import DESCRIPTION, CreatedAt, Id, Name, UpdatedAt
from gateway.domain.json_text import decode_json
from gateway.domain.updates.webhook_endpoints import DeliveryState, OutboundDelivery, OutboundWebhook
from gateway.web.models import CopiedModel, Page


class WebhookEndpointShown(CopiedModel):
    """An outbound webhook endpoint without its secrets."""

    id: Id
    name: Name
    url: Annotated[str, Field(description="The https URL that receives events by POST.")]
    kinds: Annotated[Sequence[str], Field(description="The kinds of events to send.")]
    description: Annotated[str, DESCRIPTION]
    enabled: Annotated[bool, Field(description="False: delivery is paused; new events are dropped.")]
    notice: Annotated[
        str | None,
        Field(
            description="The reason why the gateway disabled the endpoint or dropped events; null if it did neither."
        ),
    ]
    failures: Annotated[int, Field(description="The number of consecutive failed attempts.")]
    failing_since: Annotated[
        datetime | None, Field(description="The time of the first of these failures; null if there is none.")
    ]
    old_secret_until: Annotated[
        datetime | None,
        Field(validation_alias="retires_at", description="The time until which the previous secret also signs."),
    ]
    created_at: CreatedAt
    updated_at: UpdatedAt


class WebhookEndpointMinted(WebhookEndpointShown):
    """An endpoint with its newest secret. Only the responses to creation and rotation contain the secret."""

    secret: Annotated[
        str, Field(description="The secret that verifies deliveries (Standard Webhooks); it is returned only once.")
    ]

    @classmethod
    def with_secret(cls, endpoint: OutboundWebhook, secret: str) -> Self:
        """Build the response from an endpoint and its new secret."""
        return cls(**WebhookEndpointShown.of(endpoint).model_dump(), secret=secret)


class WebhookEndpointPage(Page[WebhookEndpointShown]):
    """One page of a tenant's outbound webhook endpoints."""


class WebhookDeliveryListed(CopiedModel):
    """A delivery in a list, without its payload."""

    id: Annotated[str, Field(description="The id, which is the `webhook-id` of all attempts.")]
    kind: Annotated[str, Field(description="The kind of the event.")]
    state: Annotated[DeliveryState, Field(description="The state: waiting, delivered or failed.")]
    attempts: Annotated[int, Field(description="The number of attempts since creation or the last replay.")]
    status: Annotated[int | None, Field(description="The HTTP status of the last attempt; null without a response.")]
    error: Annotated[str | None, Field(description="The reason why the last attempt failed; null if it succeeded.")]
    due_at: Annotated[
        datetime, Field(description="The time of the next attempt; for an ended delivery, the time of its deletion.")
    ]
    expires_at: Annotated[datetime, Field(description="The time after which no attempt is made.")]
    created_at: CreatedAt
    attempted_at: Annotated[datetime | None, Field(description="The time of the last attempt.")]
    ended_at: Annotated[
        datetime | None, Field(description="The time at which the delivery succeeded or finally failed.")
    ]


class WebhookDeliveryShown(WebhookDeliveryListed):
    """A delivery with its payload."""

    payload: Annotated[Mapping[str, Any], Field(description="The body that is sent: type, timestamp and data.")]

    @classmethod
    def of(cls, copied: object) -> Self:
        """Build the response from a delivery."""
        assert isinstance(copied, OutboundDelivery)  # what the catalog returns
        listed = WebhookDeliveryListed.of(copied).model_dump()
        return cls(**listed, payload=decode_json(copied.payload))


class WebhookDeliveryPage(Page[WebhookDeliveryListed]):
    """One page of the deliveries of an endpoint."""
