"""Accounts that users have connected: a user, a credential of the kind `user`, and tokens that the upstream issued."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from gateway.domain.identifiers import AccountId, CredentialId, KeyId, TenantId


class AccountState(StrEnum):
    """State of an account. If its tokens were refused, the user must connect it again."""

    CONNECTED = "connected"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class UserAccount:
    """One user's account at the upstream of one credential, without its tokens."""

    id: AccountId
    owner: KeyId
    """The id of the row of the person or key; unlike a subject, an id is never reused."""
    subject: str
    credential: CredentialId
    credential_name: str
    terms: str
    """Digest of the credential's terms under which the user connected it (`terms_digest`)."""
    scopes: tuple[str, ...]
    state: AccountState
    created_at: datetime
    refreshed_at: datetime
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountOwner:
    """An owner of accounts: a person or a key, by the id of its row; `subject` identifies it for administrators."""

    tenant: TenantId
    id: KeyId
    subject: str
    name: str
    """The name in audit entries."""
