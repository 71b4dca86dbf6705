"""Response models of the deliveries of outbound webhook endpoints."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from gateway.domain.json_text import decode_json
from gateway.domain.updates.webhook_endpoints import OutboundDelivery
from gateway.web.kinds.annotations import make_model, shown_model
from gateway.web.models import CopiedModel

_PAYLOAD = Annotated[Mapping[str, Any], Field(description="The body that is sent: type, timestamp and data.")]

WebhookDeliveryListed = shown_model(OutboundDelivery, "Listed")
WebhookDeliveryShown = make_model(
    "WebhookDeliveryShown", WebhookDeliveryListed, "A delivery with its payload.", {"payload": (_PAYLOAD, ...)}
)


def show_delivery(delivery: OutboundDelivery) -> CopiedModel:
    """The response with a delivery and its payload."""
    return WebhookDeliveryShown.of(delivery, payload=decode_json(delivery.payload))
