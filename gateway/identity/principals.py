"""Principals of stored keys and people, and their remaining validity."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import NamedTuple, Protocol

from gateway.catalog.snapshots.limits import STALE_S
from gateway.domain.identifiers import INSTALLATION, KeyId, TenantId
from gateway.domain.tenancy.keys import Key, KeySecret
from gateway.domain.tenancy.principals import Caller, Principal


class KeyFinder(Protocol):
    """The store of API keys."""

    async def find(self, wanted: Collection[KeyId], *, hurried: bool = False) -> Mapping[KeyId, tuple[Key, str]]:
        """Return the existing keys, each with its tenant's slug. `hurried`: fail fast, since a cached result exists."""
        ...


@dataclass(slots=True)
class RememberedCaller:
    """A cached caller: valid until `until`, or until `kept_until` while the database is unavailable."""

    caller: Caller
    asked_at: float
    until: float
    kept_until: float
    ends_at: float
    """The time of the next introspection of an access token; a renewal does not move it."""
    is_used: bool = False


def principal_of(key: Key, slug: str, secret: KeySecret | None = None) -> Principal:
    """Return the principal of a stored key or person, without profile and expiry of an access token.

    `secret` is the secret with which the caller authenticated; by default the newest.
    """
    return Principal(
        tenant=key.tenant,
        slug=slug,
        key=key.id,
        subject=key.principal,
        scopes=key.scopes,
        profile=key.profile,
        version=(secret or key.secret).number if key.issuer is None else key.version,
        is_person=key.issuer is not None,
        operator=operator_of(key),
    )


def operator_of(key: Key) -> str:
    """Return the name of the operator whose stored key or person this is; empty for one of a tenant."""
    if key.tenant != INSTALLATION:
        return ""
    return key.name if key.issuer is None else key.principal


def secret_of(principal: Principal, key: Key) -> KeySecret | None:
    """Return the secret with which the principal authenticated; None if it has ended."""
    return next((secret for secret in key.secrets if secret.number == principal.version), None)


def is_same(principal: Principal, key: Key, slug: str) -> bool:
    """True if the stored key still gives this principal; a person's profile, groups and scopes come from the token."""
    if principal.is_person:
        stored = principal_of(key, slug)
        groups, scopes = principal.packed_groups, principal.packed_scopes
        return principal == replace(stored, profile=principal.profile, packed_groups=groups, packed_scopes=scopes)
    secret = secret_of(principal, key)
    return secret is not None and principal == principal_of(key, slug, secret)  # guard: key-secret-ended


def shared(caller: Caller | None, principal: Principal) -> Principal:
    """Return the cached principal if it is equal, so that one object is shared; else the new principal."""
    return caller if isinstance(caller, Principal) and caller == principal else principal


def lifetime_of(key: Key, ends_at: datetime | None = None) -> float:
    """Return the seconds for which the credential remains valid, at most 60; zero or less when it is invalid.

    `ends_at` is the end of the access token, or of the former secret.
    """
    now = datetime.now(UTC)
    # guard: key-expiry, key-revocation
    ends = [(end - now).total_seconds() for end in (ends_at, key.expires_at, key.revoked_at) if end is not None]
    return min([STALE_S, *ends])


class Renewed(NamedTuple):
    """A principal whose stored key was read again, its secret, and the seconds for which it remains valid."""

    principal: Principal
    secret: KeySecret
    lifetime: float


def renewed(principal: Principal, key: Key, slug: str) -> Renewed | None:
    """Return the principal with the current state of its stored key.

    A person keeps the cached principal, because profile and expiry are only in the token. None for a changed person,
    whose token has to be verified again, and for a secret that was replaced or has expired.
    """
    if principal.is_person:
        if not is_same(principal, key, slug):  # guard: person-taken-along-changed
            return None
        return Renewed(principal, key.secret, lifetime_of(key, principal.expires_at))
    secret = secret_of(principal, key)
    if secret is None:  # guard: key-taken-along-replaced
        return None
    current = shared(principal, principal_of(key, slug, secret))
    return Renewed(current, secret, lifetime_of(key, secret.ends_at))


def key_of(caller: Caller) -> KeyId | None:
    """Return the key of a caller, or the person's id; None for the operator."""
    return caller.key if isinstance(caller, Principal) else None


def tenant_of(caller: Caller) -> TenantId | None:
    """Return the tenant of a caller; None for the operator."""
    return caller.tenant if isinstance(caller, Principal) else None
