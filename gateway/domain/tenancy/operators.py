"""Operators by name: their roles, the keys that programs of the platform team use, and what a role permits."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated

from gateway.domain.identifiers import KeyId, OperatorGrantId, OperatorKeyId
from gateway.domain.members.formats import PERSON
from gateway.domain.members.markers import About, Check, Form, JsonFormat, Length, Option, Shape
from gateway.domain.members.values import check_printable
from gateway.domain.tenancy.access import GROUP, entries_of
from gateway.domain.tenancy.keys import KeyState
from gateway.domain.tenancy.limits import MAX_OPERATOR_TENANTS, MAX_ROLE_KINDS, MAX_WHO
from gateway.domain.tenancy.principals import Principal


class OperatorRole(StrEnum):
    """A role of operators; a role that is limited to tenants has no right outside of them."""

    ADMINISTRATOR = "administrator"
    """Everything; limited to tenants or kinds, what an admin of these tenants may do."""
    CREATOR = "creator"
    """Create tenants, and administer those that it has created."""
    SUPPORT = "support"
    """Read everything; secrets are in no response to a GET."""
    AUDITOR = "auditor"
    """Read audit trails, tenants and operators."""
    FINANCE = "finance"
    """Read tenants, their limits and their ceilings."""


def check_time(text: str) -> str:
    """Return the time in UTC, as RFC 3339 writes it.

    Raises:
        ValueError: the text is no time with an offset.
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError("must be a time such as 2030-01-31T00:00:00Z") from None
    if moment.tzinfo is None:
        raise ValueError("must have an offset, such as the Z of 2030-01-31T00:00:00Z")
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


_TENANTS = About("The tenants to which the role is limited, by slug or id; null means all. Stored as ids.")
_KINDS = About(
    "Limits the role `administrator` to manifests of these kinds, such as `profile`: their objects can be set and "
    "removed by an application, and nothing else of the admin API can be used. Null means no limit."
)
_RoleMember = Annotated[
    OperatorRole,
    Shape.LISTED,
    About(
        "`administrator`: everything. `creator`: create tenants, and administer those. `support`: read everything. "
        "`auditor`: read audit trails, tenants and operators. `finance`: read tenants, limits and ceilings."
    ),
]
_TenantsMember = Annotated[
    tuple[Annotated[str, Length(least=1, most=64), Check(check_printable)], ...] | None,
    Length(least=1, most=MAX_OPERATOR_TENANTS),
    Option(name="only-tenant", metavar="SLUG", nothing="all"),
    _TENANTS,
]
_KindsMember = Annotated[
    tuple[Annotated[str, Length(least=1, most=64), Check(check_printable)], ...] | None,
    Length(least=1, most=MAX_ROLE_KINDS),
    Option(name="only-kind", metavar="KIND", nothing="all"),
    _KINDS,
]
_TenantSlugs = Annotated[
    tuple[str, ...] | None, About("The slugs of the tenants to which the role is limited; null means all.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorRights:
    """A role, limited to tenants (by id) and to manifests of some kinds, if these are not None."""

    role: OperatorRole
    tenants: Collection[str] | None = None
    kinds: Collection[str] | None = None

    @property
    def is_unlimited(self) -> bool:
        """True for an administrator of the installation."""
        return self.role is OperatorRole.ADMINISTRATOR and self.tenants is None and self.kinds is None

    def concerns(self, tenant: str) -> bool:
        """True if the role applies to the tenant with this id."""
        return self.tenants is None or tenant in self.tenants  # guard: operator-tenants


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorKeyStatus:
    """The state of an operator key, which the gateway sets."""

    state: Annotated[KeyState, About("`active` or `expired`; a revoked key is deleted."), Shape.LISTED]
    tenants: _TenantSlugs
    last_used_at: Annotated[datetime | None, About("The hour of the last known use; null if never."), Shape.LISTED]


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorKey:
    """A key of one operator or program of the platform team; the audit trails have its name."""

    id: OperatorKeyId
    name: str
    role: _RoleMember
    tenants: _TenantsMember = None
    kinds: _KindsMember = None
    expires_at: Annotated[
        Annotated[str, Length(least=10, most=40), Check(check_time)] | None,
        Shape.LISTED,
        JsonFormat("date-time"),
        Option(metavar="TIME", nothing="never"),
        About("The expiry time, in the future; null means never."),
    ] = None
    version: int
    created_at: datetime
    updated_at: datetime

    @property
    def rights(self) -> OperatorRights:
        """The rights of the key."""
        return OperatorRights(role=self.role, tenants=self.tenants, kinds=self.kinds)

    @property
    def key(self) -> KeyId:
        """The id of the stored key that has the secret."""
        return KeyId(self.id)

    @property
    def ends_at(self) -> datetime | None:
        """The expiry time."""
        return None if self.expires_at is None else datetime.fromisoformat(self.expires_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorGrantStatus:
    """The tenants of a grant by their slugs."""

    tenants: _TenantSlugs


_Who = tuple[Annotated[str, Length(most=300), Form(PERSON), Check(check_printable)], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorGrant:
    """Gives a role to people and workloads who sign in with a token of an issuer of the installation."""

    id: OperatorGrantId
    name: str
    role: _RoleMember
    who: Annotated[
        _Who,
        Length(least=1, most=MAX_WHO),
        Shape.LISTED,
        About(
            "The people and workloads who have the role if any entry matches: `subject:ISSUER:SUBJECT`,"
            " `group:ISSUER:GROUP` or `issuer:ISSUER`."
        ),
    ]
    unless: Annotated[_Who, Length(most=MAX_WHO), About("The people and workloads without the role.")] = ()
    tenants: _TenantsMember = None
    kinds: _KindsMember = None
    version: int
    created_at: datetime
    updated_at: datetime

    @property
    def rights(self) -> OperatorRights:
        """The rights that the grant gives."""
        return OperatorRights(role=self.role, tenants=self.tenants, kinds=self.kinds)

    def names(self, principal: Principal) -> bool:
        """True if the grant gives its role to a person; unknown groups give none, and are excepted by any group."""
        own = set(entries_of(principal))
        is_unknown = principal.packed_groups is None and any(entry.startswith(GROUP) for entry in self.unless)
        # guard: operator-grant-of-people
        return principal.is_person and not own.isdisjoint(self.who) and own.isdisjoint(self.unless) and not is_unknown
