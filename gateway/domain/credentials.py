"""Named credentials of a tenant without their secrets."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from gateway.domain.identifiers import CredentialId


class CredentialLocation(StrEnum):
    """Position of a credential in a request."""

    HEADER = "header"
    QUERY = "query"
    BEARER = "bearer"
    BASIC = "basic"


AUTHORIZATION = "Authorization"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCredential:
    """A named credential for declared handlers; `field` is the header or query parameter it fills.

    The gateway sends it only to `origins`, whatever a handler declares.
    """

    id: CredentialId
    name: str
    place: CredentialLocation
    field: str
    origins: tuple[str, ...]
    version: int
    created_at: datetime
    updated_at: datetime
