"""Principals of stored keys and people, and how long they remain valid."""

from dataclasses import replace
from datetime import UTC, datetime

from gateway.domain.identifiers import KeyId, TenantId
from gateway.domain.tenancy.keys import Key
from gateway.domain.tenancy.principals import Caller, Principal

STALE_S = 60.0
"""Seconds for which a result is used at most, while the database is unavailable."""


def principal_of(key: Key, slug: str) -> Principal:
    """Return the principal of a stored key or person, without the token's profile and end."""
    return Principal(
        tenant=key.tenant,
        slug=slug,
        key=key.id,
        subject=key.subject,
        scopes=key.scopes,
        profile=key.profile,
        version=key.version,
        is_person=key.issuer is not None,
    )


def is_same(principal: Principal, key: Key, slug: str) -> bool:
    """True if the stored key is still this principal; a person's profile comes from the token, not from the row."""
    stored = principal_of(key, slug)
    return principal == (replace(stored, profile=principal.profile) if principal.is_person else stored)


def shared(caller: Caller | None, principal: Principal) -> Principal:
    """Return the cached principal if it is equal, so that one object is shared; else the new principal."""
    return caller if isinstance(caller, Principal) and caller == principal else principal


def lifetime_of(key: Key, token_ends_at: datetime | None = None) -> float:
    """Return the seconds for which the credential remains valid, at most 60; zero or less when it is invalid."""
    now = datetime.now(UTC)
    # guard: key-expiry, key-revocation
    ends = [(end - now).total_seconds() for end in (token_ends_at, key.expires_at, key.revoked_at) if end is not None]
    return min([STALE_S, *ends])


def renewed(caller: Caller, key: Key, slug: str) -> tuple[Principal | None, float]:
    """Return the principal of a stored key that a cached caller has, and the seconds for which it remains valid.

    The principal of a person is the cached one, because only the token has its profile and end. None for a changed
    person, whose token has to be verified again.
    """
    if isinstance(caller, Principal) and caller.is_person:
        same = caller if is_same(caller, key, slug) else None
        return same, lifetime_of(key, caller.expires_at)
    return shared(caller, principal_of(key, slug)), lifetime_of(key)  # zero or less: it has ended


def key_of(caller: Caller) -> KeyId | None:
    """Return the key of a caller, or the person's id; None for the operator."""
    return caller.key if isinstance(caller, Principal) else None


def tenant_of(caller: Caller) -> TenantId | None:
    """Return the tenant of a caller; None for the operator."""
    return caller.tenant if isinstance(caller, Principal) else None
