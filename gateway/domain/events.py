"""Hints that something moved; the catalog stays the truth."""

from dataclasses import dataclass

from gateway.domain.identifiers import KeyId, TenantId


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogMoved:
    """The tenant's catalog has reached this revision."""

    tenant: TenantId
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyChanged:
    """A key was revoked, changed or deleted: forget what is cached of it."""

    tenant: TenantId
    key: KeyId


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEnded:
    """A session was ended: forget what is cached of it."""

    tenant: TenantId
    session: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantRemoved:
    """The tenant is gone: drop everything that is kept of it."""

    tenant: TenantId


Event = CatalogMoved | KeyChanged | SessionEnded | TenantRemoved
