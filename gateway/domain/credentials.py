"""Named credentials of a tenant as they may be shown: everything but the secret."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from gateway.domain.identifiers import CredentialId


class CredentialLocation(StrEnum):
    """Where a credential goes on a request."""

    HEADER = "header"
    QUERY = "query"
    BEARER = "bearer"
    BASIC = "basic"


AUTHORIZATION = "Authorization"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCredential:
    """A credential that handlers name; `field` is the header or query parameter it fills.

    It is sent to `origins` only, whatever a handler says.
    """

    id: CredentialId
    name: str
    place: CredentialLocation
    field: str
    origins: tuple[str, ...]
    version: int
    created_at: datetime
    updated_at: datetime
