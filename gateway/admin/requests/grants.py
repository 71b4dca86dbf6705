"""Request models of consents, grants and accounts."""

from typing import Annotated, Literal

from pydantic import Field

from gateway.admin.requests.primitives import Text
from gateway.domain.tenancy.accounts import AccountState
from gateway.domain.tenancy.grants import GrantState
from gateway.web.models import Absent, ListQuery

ByTime = Annotated[
    Literal["created_at", "-created_at"] | Absent,
    Field(description="The field that orders the list; a `-` in front reverses the order.", examples=["-created_at"]),
]


class ConsentListQuery(ListQuery):
    """Search, filters and order of consents; without `sort` they are ordered by id."""

    subject: Annotated[Text | Absent, Field(description="Only consents of the person with this subject.")] = None
    client: Annotated[Text | Absent, Field(description="Only consents to the client with this id.")] = None
    sort: ByTime = None


class GrantListQuery(ListQuery):
    """Search, filters and order of grants; without `sort` they are ordered by id."""

    subject: Annotated[Text | Absent, Field(description="Only grants of the person with this subject.")] = None
    client: Annotated[Text | Absent, Field(description="Only grants of the client with this id.")] = None
    state: Annotated[GrantState | Absent, Field(description="Only grants in this state.")] = None
    sort: ByTime = None


class AccountListQuery(ListQuery):
    """Search, filters and order of accounts; without `sort` they are ordered by id."""

    subject: Annotated[Text | Absent, Field(description="Only accounts of users with this subject.")] = None
    credential: Annotated[Text | Absent, Field(description="Only accounts for the credential of this name.")] = None
    state: Annotated[AccountState | Absent, Field(description="Only accounts in this state.")] = None
    sort: ByTime = None
