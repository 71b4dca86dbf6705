"""Events: hints that a revision, resource, key or session changed. The catalog stays the truth."""

from dataclasses import dataclass

from gateway.domain.identifiers import ApprovalId, KeyId, LiveSourceId, TaskId, TenantId
from gateway.domain.tenancy.principals import Principal


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogMoved:
    """The tenant's catalog has reached this revision."""

    tenant: TenantId
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyChanged:
    """A key was revoked, changed or deleted; replicas drop their cache entries for it."""

    tenant: TenantId
    key: KeyId
    is_ended: bool = False
    """True if the key was revoked or deleted, so that no client can use it again."""
    kept: tuple[int, ...] = ()
    """The numbers of the key's valid secrets; empty in events of an earlier release."""

    def ends(self, principal: Principal) -> bool:
        """True if streams of this principal have to end."""
        is_kept = not self.is_ended and principal.version in self.kept
        return (principal.tenant, principal.key) == (self.tenant, self.key) and not is_kept


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuerChanged:
    """An issuer of the tenant was changed or deleted; replicas drop the cached results of the tenant's credentials.

    Tokens of the gateway are cached with their grants, which no event of a person names.
    """

    tenant: TenantId


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEnded:
    """A session was ended; replicas drop their cache entries for it."""

    tenant: TenantId
    session: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestCancelled:
    """The client of a session has cancelled a request, which may run on any replica; `request` is its id as JSON."""

    tenant: TenantId
    session: str
    request: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantRemoved:
    """The tenant was deleted; replicas drop all their cache entries for it."""

    tenant: TenantId


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceUpdated:
    """The resource at this URI of the tenant has changed."""

    tenant: TenantId
    uri: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateChanged:
    """A resource template was created, changed or deleted; all resources at its URIs count as changed."""

    tenant: TenantId
    template: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveSourceChanged:
    """A live source was created, changed or removed, or has to be reattached."""

    tenant: TenantId
    source: LiveSourceId


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalChanged:
    """An approval was created or changed its state; calls that wait for it read it again."""

    tenant: TenantId
    approval: ApprovalId


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskChanged:
    """The state of a task has changed."""

    tenant: TenantId
    task: TaskId


Event = (
    CatalogMoved
    | KeyChanged
    | IssuerChanged
    | SessionEnded
    | TenantRemoved
    | ResourceUpdated
    | TemplateChanged
    | RequestCancelled
    | LiveSourceChanged
    | ApprovalChanged
    | TaskChanged
)
