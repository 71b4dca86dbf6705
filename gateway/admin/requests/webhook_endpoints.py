"""Request models of outbound webhook endpoints."""

from typing import Annotated

from pydantic import AfterValidator, Field

from gateway.admin.fields import DESCRIPTION
from gateway.admin.requests.models import Url
from gateway.domain.members.formats import NAME
from gateway.domain.updates.webhook_endpoints import WebhookEventKind
from gateway.web.models import GIVEN, Absent, BodyModel


def _check_distinct(value: list[WebhookEventKind]) -> list[WebhookEventKind]:
    if len(set(value)) != len(value):
        raise ValueError("must not name a kind twice")
    return value


EndpointName = Annotated[str, Field(pattern=NAME, description="Unique in the tenant.")]
EndpointUrl = Annotated[Url, Field(description="The https URL that receives events by POST.")]
EndpointText = Annotated[str, Field(max_length=500), DESCRIPTION]
EventKinds = Annotated[
    list[Annotated[WebhookEventKind, Field(strict=False)]],
    Field(
        min_length=1,
        max_length=len(WebhookEventKind),
        json_schema_extra={"uniqueItems": True},
        description="The kinds of events to send.",
    ),
    AfterValidator(_check_distinct),
]
Enabled = Annotated[
    bool, Field(description="False pauses delivery: new events are dropped, and queued deliveries wait.")
]


class WebhookEndpointCreate(BodyModel):
    """An endpoint of the tenant's own system, which receives signed events."""

    name: EndpointName
    url: EndpointUrl
    kinds: EventKinds
    description: EndpointText = ""
    enabled: Enabled = True


class WebhookEndpointUpdate(BodyModel):
    """Changes of an endpoint; absent fields keep their value."""

    name: Annotated[EndpointName | Absent, GIVEN] = None
    url: Annotated[EndpointUrl | Absent, GIVEN] = None
    kinds: Annotated[EventKinds | Absent, GIVEN] = None
    description: Annotated[EndpointText | Absent, GIVEN] = None
    enabled: Annotated[Enabled | Absent, GIVEN] = None
