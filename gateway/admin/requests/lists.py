"""Query parameters of lists: search text, filters of the noun, and order."""

from typing import Annotated, Literal

from pydantic import Field

from gateway.admin.requests.primitives import Text
from gateway.domain.tenancy.keys import KeyState, Scope
from gateway.domain.updates.webhook_endpoints import DeliveryState
from gateway.web.models import Absent, ListQuery, PageQuery

_SORT = "The field that orders the list; a `-` in front reverses the order."

ByNameOrTime = Annotated[
    Literal["name", "-name", "created_at", "-created_at"] | Absent, Field(description=_SORT, examples=["-created_at"])
]


class DeletedTenantQuery(PageQuery):
    """Filter of the deleted tenants."""

    slug: Annotated[str | Absent, Field(max_length=63, description="Only tenants that had this slug.")] = None


class KeyListQuery(ListQuery):
    """Search, filters and order of keys; without `sort` they are ordered by id."""

    scope: Annotated[Scope | Absent, Field(description="Only keys with this scope.")] = None
    state: Annotated[KeyState | Absent, Field(description="Only keys in this state.")] = None
    profile: Annotated[Text | Absent, Field(description="Only keys that are bound to this profile.")] = None
    sort: ByNameOrTime = None


class WebhookDeliveryListQuery(ListQuery):
    """Search, filters and order of the deliveries of one endpoint; by default the newest is the first."""

    state: Annotated[DeliveryState | Absent, Field(description="Only deliveries in this state.")] = None
    kind: Annotated[Text | Absent, Field(description="Only deliveries of this kind of event.")] = None
    sort: Annotated[Literal["created_at", "-created_at"], Field(description=_SORT)] = "-created_at"
