"""Who is asking: a tenant's client or an operator."""

from dataclasses import dataclass

from gateway.domain.identifiers import KeyId, TenantId
from gateway.domain.tenancy.keys import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """One credential of one tenant; sessions and sealed state bind to tenant and subject."""

    tenant: TenantId
    slug: str
    key: KeyId
    subject: str
    scopes: frozenset[Scope]
    profile: str | None = None
    version: int = 0
    """Of the key: what was opened with an older secret of it is not what the key is good for now."""

    @property
    def name(self) -> str:
        """How logs and audit entries call this principal."""
        return f"key:{self.key}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """Whoever holds the operator key: runs the gateway, owns no tenant."""

    name: str = "operator"


Caller = Principal | Operator
