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
    is_ended: bool = False
    """Whether it was revoked or deleted, so that nobody will come with it again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEnded:
    """A session was ended: forget what is cached of it."""

    tenant: TenantId
    session: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestCancelled:
    """The client of a session has cancelled a request (its id as JSON), whichever replica answers it."""

    tenant: TenantId
    session: str
    request: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantRemoved:
    """The tenant is gone: drop everything that is kept of it."""

    tenant: TenantId


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceUpdated:
    """What stands at this URI in the tenant is not what it was."""

    tenant: TenantId
    uri: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateChanged:
    """A resource template was made, changed or taken away: what stands at the URIs it makes is not what it was."""

    tenant: TenantId
    template: str


Event = CatalogMoved | KeyChanged | SessionEnded | TenantRemoved | ResourceUpdated | TemplateChanged | RequestCancelled
