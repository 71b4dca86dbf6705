"""Query parameters of lists: search text, filters of the noun, and order."""

from typing import Annotated, Literal

from pydantic import Field

from gateway.admin.requests.primitives import Text
from gateway.domain.updates.webhook_endpoints import DeliveryState
from gateway.web.models import Absent, ListQuery, PageQuery

_SORT = "The field that orders the list; a `-` in front reverses the order."


class DeletedTenantQuery(PageQuery):
    """Filter of the deleted tenants."""

    slug: Annotated[str | Absent, Field(max_length=63, description="Only tenants that had this slug.")] = None


class WebhookDeliveryListQuery(ListQuery):
    """Search, filters and order of the deliveries of one endpoint; by default the newest is the first."""

    state: Annotated[DeliveryState | Absent, Field(description="Only deliveries in this state.")] = None
    kind: Annotated[Text | Absent, Field(description="Only deliveries of this kind of event.")] = None
    sort: Annotated[Literal["created_at", "-created_at"], Field(description=_SORT)] = "-created_at"
