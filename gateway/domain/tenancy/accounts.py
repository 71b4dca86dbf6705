"""Accounts that users have connected: a user, a credential of the kind `user`, and tokens that the upstream issued."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, ClassVar

from gateway.domain.identifiers import AccountId, CredentialId, KeyId, TenantId
from gateway.domain.members.markers import About, Shape, ShownAs, StoredAs


class AccountState(StrEnum):
    """State of an account. If its tokens were refused, the user must connect it again."""

    CONNECTED = "connected"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class UserAccount:
    """An account that a user has connected, without its tokens."""

    stem: ClassVar[str] = "Account"
    id: Annotated[AccountId, About("The id; it never changes."), Shape.LISTED]
    owner: Annotated[KeyId, StoredAs("owner_id"), About("The id of the person or key that owns the account.")]
    """Unlike a subject, an id is never reused."""
    subject: Annotated[str, About("The subject of the person in the tenant."), Shape.LISTED]
    credential: Annotated[CredentialId, StoredAs("credential_id")]
    credential_name: Annotated[
        str,
        ShownAs("credential"),
        About("The name of the credential for which the account was connected."),
        Shape.LISTED,
    ]
    terms: str
    """Digest of the credential's terms under which the user connected it (`terms_digest`)."""
    scopes: Annotated[tuple[str, ...], About("The scopes that the upstream granted."), Shape.LISTED]
    state: Annotated[
        AccountState,
        About("`connected`, or `refused`: the user has to connect the account again."),
        Shape.LISTED,
    ]
    created_at: Annotated[datetime, About("The time of creation."), Shape.LISTED]
    refreshed_at: Annotated[datetime, About("The last time at which tokens of the account were issued."), Shape.LISTED]
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountOwner:
    """An owner of accounts: a person or a key, by the id of its row; `subject` identifies it for administrators."""

    tenant: TenantId
    id: KeyId
    subject: str
    name: str
    """The name in audit entries."""
