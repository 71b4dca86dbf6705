"""Principals: a tenant's client or an operator."""

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
    """Version of the key. Sessions and sealed state of an older secret are not valid for the current secret."""

    @property
    def name(self) -> str:
        """The name in logs and audit entries."""
        return f"key:{self.key}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """The holder of the operator key, or the gateway itself; belongs to no tenant."""

    name: str = "operator"


Caller = Principal | Operator
