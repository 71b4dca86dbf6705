"""Response models of outbound webhook endpoints and their deliveries."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import Field

from gateway.admin.fields import CreatedAt
from gateway.domain.json_text import decode_json
from gateway.domain.updates.webhook_endpoints import DeliveryState, OutboundDelivery
from gateway.web.models import CopiedModel, Page


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
