"""Principals: a tenant's client or an operator."""

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple

from gateway.domain.identifiers import IssuerId, KeyId, TenantId
from gateway.domain.tenancy.keys import Scope


@dataclass(frozen=True, slots=True)
class InboundToken:
    """The access token with which a person signed in; only its own issuer ever receives it."""

    issuer: IssuerId
    value: str = field(repr=False)


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
    """The number of the key's secret, or the version of the person; what was opened under another one ends."""

    is_person: bool = False
    """True for a person who signed in with an access token; `key` is then the person's id."""
    expires_at: datetime | None = field(default=None, compare=False)
    """The end of the access token; None for a key, whose end may be moved."""
    token: InboundToken | None = field(default=None, compare=False, repr=False)
    """None for a key, and for a person who is not there: an approved call or a task goes on without the token."""

    @property
    def name(self) -> str:
        """The name in logs and audit entries."""
        return f"user:{self.subject}" if self.is_person else f"key:{self.key}"

    def without_token(self) -> "Principal":
        """Return the principal as handlers written in Python see it, so that none sends the access token anywhere."""
        return self if self.token is None else replace(self, token=None)  # guard: code-without-token


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """The holder of the operator key, or the gateway itself; belongs to no tenant."""

    name: str = "operator"


class ToolCaller(NamedTuple):
    """The principal of a call, and its action: the kind of the call, and the name or URI of its primitive."""

    principal: Principal
    action: tuple[str, str]


Caller = Principal | Operator
