"""Response models of outbound webhook endpoints and their deliveries."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Self

import msgspec
from pydantic import Field

from gateway.admin.fields import DESCRIPTION, CreatedAt, Id, Name, UpdatedAt
from gateway.admin.responses.models import CopiedModel, Page
from gateway.domain.updates.webhook_endpoints import DeliveryState, OutboundDelivery, OutboundWebhook


class WebhookEndpointShown(CopiedModel):
    """An outbound webhook endpoint without its secrets."""

    id: Id
    name: Name
    url: Annotated[str, Field(description="Where events are sent.")]
    kinds: Annotated[Sequence[str], Field(description="The kinds of events that are sent.")]
    description: Annotated[str, DESCRIPTION]
    enabled: Annotated[bool, Field(description="False: new events are not sent.")]
    notice: Annotated[str | None, Field(description="Why the gateway disabled it or dropped events; null: it did not.")]
    failures: Annotated[int, Field(description="Failed attempts in a row.")]
    failing_since: Annotated[datetime | None, Field(description="The first of them; null: there is none.")]
    old_secret_until: Annotated[
        datetime | None,
        Field(validation_alias="retires_at", description="Until when the secret before the last rotation also signs."),
    ]
    created_at: CreatedAt
    updated_at: UpdatedAt


class WebhookEndpointMinted(WebhookEndpointShown):
    """An endpoint with its newest secret. Only the responses to creation and rotation contain the secret."""

    secret: Annotated[str, Field(description="Verifies deliveries (Standard Webhooks); it is never shown again.")]

    @classmethod
    def with_secret(cls, endpoint: OutboundWebhook, secret: str) -> Self:
        """Build the response from an endpoint and its new secret."""
        return cls(**WebhookEndpointShown.of(endpoint).model_dump(), secret=secret)


class WebhookEndpointPage(Page[WebhookEndpointShown]):
    """One page of a tenant's outbound webhook endpoints."""


class WebhookDeliveryListed(CopiedModel):
    """A delivery in a list, without its payload."""

    id: Annotated[str, Field(description="Its id and its `webhook-id`, the same for all attempts.")]
    kind: Annotated[str, Field(description="The kind of the event.")]
    state: Annotated[DeliveryState, Field(description="Whether it waits, has arrived, or was given up.")]
    attempts: Annotated[int, Field(description="Attempts since it was made, or replayed last.")]
    status: Annotated[int | None, Field(description="The HTTP status of the last attempt; null: none arrived.")]
    error: Annotated[str | None, Field(description="Why the last attempt failed; null: it did not.")]
    due_at: Annotated[datetime, Field(description="The next attempt, or the deletion of one that has ended.")]
    expires_at: Annotated[datetime, Field(description="When it is given up at the latest.")]
    created_at: CreatedAt
    attempted_at: Annotated[datetime | None, Field(description="The last attempt.")]
    ended_at: Annotated[datetime | None, Field(description="When it arrived or was given up.")]


class WebhookDeliveryShown(WebhookDeliveryListed):
    """A delivery with its payload."""

    payload: Annotated[Mapping[str, Any], Field(description="The body that is sent: type, timestamp and data.")]

    @classmethod
    def of(cls, copied: object) -> Self:
        """Build the response from a delivery."""
        assert isinstance(copied, OutboundDelivery)  # what the catalog returns
        listed = WebhookDeliveryListed.of(copied).model_dump()
        return cls(**listed, payload=msgspec.json.decode(copied.payload))


class WebhookDeliveryPage(Page[WebhookDeliveryListed]):
    """One page of the deliveries of an endpoint."""
