"""Request models of clients of the authorization server, consents, and grants."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from gateway.admin.requests.lists import ByNameOrTime
from gateway.admin.requests.primitives import Text
from gateway.domain.members.formats import PRINTABLE
from gateway.domain.tenancy.accounts import AccountState
from gateway.domain.tenancy.grants import ClientKind, GrantState
from gateway.domain.tenancy.redirect_uris import MAX_REDIRECT_URIS, MAX_URI_LENGTH, fault_of
from gateway.web.models import GIVEN, Absent, BodyModel, ListQuery


def _check(uri: str) -> str:
    if (fault := fault_of(uri, is_trusted=True)) is not None:
        raise ValueError(fault)
    return uri


ClientName = Annotated[
    str,
    Field(min_length=1, max_length=200, pattern=PRINTABLE, description="The name on the consent page."),
]
RedirectUris = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=MAX_URI_LENGTH), AfterValidator(_check)]],
    Field(
        min_length=1,
        max_length=MAX_REDIRECT_URIS,
        description="The exact redirect URIs; at 127.0.0.1, [::1] and localhost, the port is ignored.",
    ),
]
ByTime = Annotated[
    Literal["created_at", "-created_at"] | Absent,
    Field(description="The field that orders the list; a `-` in front reverses the order.", examples=["-created_at"]),
]


class ClientCreate(BodyModel):
    """A client of the tenant's authorization server."""

    name: ClientName
    redirect_uris: RedirectUris
    confidential: Annotated[
        bool, Field(description="True for a client that keeps a secret, which the response contains.")
    ] = False


class ClientUpdate(BodyModel):
    """Changes of a client; absent fields keep their value."""

    name: Annotated[ClientName | Absent, GIVEN] = None
    redirect_uris: Annotated[RedirectUris | Absent, GIVEN] = None


class ClientListQuery(ListQuery):
    """Search, filters and order of clients; without `sort` they are ordered by id."""

    kind: Annotated[
        Literal[ClientKind.REGISTERED, ClientKind.DYNAMIC] | Absent, Field(description="Only clients of this kind.")
    ] = None
    sort: ByNameOrTime = None


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
