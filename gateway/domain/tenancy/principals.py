"""Principals: a tenant's client or an operator."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple

import msgspec

from gateway.domain.identifiers import IssuerId, KeyId, TenantId
from gateway.domain.tenancy.keys import Scope


@dataclass(frozen=True, slots=True)
class InboundToken:
    """The access token with which a person signed in; only its own issuer may receive it."""

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
    kinds: frozenset[str] | None = None
    """The kinds to whose manifests the role of a person limits the admin API; None for no limit."""
    version: int = 0
    """The number of the key's secret, or the version of the person; sessions that were opened under another
    number end.
    """

    is_person: bool = False
    """True for a person who signed in with an access token; `key` is then the person's id."""
    packed_groups: bytes | None = None
    """The groups of a person's token as `pack_claims` returns them; None for a key, and if they are not known."""
    packed_scopes: bytes | None = None
    """The OAuth scopes of a person's token as `pack_claims` returns them; None for a key, and without a token."""
    expires_at: datetime | None = field(default=None, compare=False)
    """The expiry of the access token; None for a key, because its expiry can change."""
    token: InboundToken | None = field(default=None, compare=False, repr=False)
    """None for a key, and for a call that continues after the person's token expired: an approved call or a task."""
    operator: str = ""
    """The name of the operator that acts in the tenant; empty for a principal of the tenant itself."""
    thumbprint: str | None = field(default=None, compare=False)
    """The thumbprint of the client's key to which the access token is bound; None if it is bound to none."""

    @property
    def name(self) -> str:
        """The name in logs and audit entries."""
        if self.operator:
            return f"operator:{self.operator}"
        return f"user:{self.subject}" if self.is_person else f"key:{self.key}"

    @property
    def credential(self) -> tuple["Principal", InboundToken | None, datetime | None]:
        """The principal with its access token: equal principals of one person may have tokens that end separately."""
        return self, self.token, self.expires_at

    @property
    def groups(self) -> Sequence[str] | None:
        """The groups of the token, each as `ISSUER:GROUP`; None if they are not known."""
        return None if self.packed_groups is None else msgspec.json.decode(self.packed_groups, type=list[str])

    @property
    def token_scopes(self) -> Sequence[str]:
        """The OAuth scopes of the token, each as `ISSUER:SCOPE`; none if they are not known."""
        return [] if self.packed_scopes is None else msgspec.json.decode(self.packed_scopes, type=list[str])

    def may_apply(self, kind: str) -> bool:
        """True if no role limits the principal to manifests of other kinds."""
        return self.kinds is None or kind in self.kinds

    def without_token(self) -> "Principal":
        """Return the principal for handlers in Python, without the access token, so that they cannot send it."""
        return self if self.token is None else replace(self, token=None)  # guard: code-without-token


def pack_claims(claims: Iterable[str]) -> bytes:
    """Pack groups or OAuth scopes, each as `ISSUER:NAME`, for a principal; rules name printable ones only.

    Cached credentials contain them: 1,000 strings in a set would take ten times the memory of the token.
    """
    return msgspec.json.encode(sorted(claim for claim in claims if claim.isprintable()))  # guard: access-group-form


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """The holder of an operator key, or the gateway itself; belongs to no tenant."""

    name: str = "operator"
    key: str = field(default="", compare=False)
    """The name of the key that was used; empty for the gateway itself."""


class ToolCaller(NamedTuple):
    """The principal of a call, and its action: the kind of the call, and the name or URI of its primitive."""

    principal: Principal
    action: tuple[str, str]


Caller = Principal | Operator
