"""What the REST face answers with; the OpenAPI document is made from these and every answer is written by them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Generic, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from gateway.domain.audit import AuditEntry, AuditKind
from gateway.domain.findings import Finding, Verdict
from gateway.domain.tenancy.ceilings import BoundedPolicy, CeilingsInForce
from gateway.domain.tenancy.egress import Egress
from gateway.domain.tenancy.keys import Key, MintedKey, Scope
from gateway.domain.tenancy.policy import Decision, Limits
from gateway.domain.tenancy.tenants import Tenant


class ResponseModel(BaseModel):
    """An answer; a field that is not declared cannot be in it."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)  # as what is sent


S = TypeVar("S", bound=ResponseModel)


class Page(ResponseModel, Generic[S]):
    """Part of a list."""

    items: Sequence[S]
    next_cursor: Annotated[str | None, Field(description="For the next part; null on the last.")]


class TenantShown(ResponseModel):
    """A tenant."""

    id: str
    slug: str
    name: str
    revision: Annotated[int, Field(description="Rises with every change of the tenant.")]
    created_at: datetime

    @classmethod
    def of(cls, tenant: Tenant) -> Self:
        """The tenant as it is shown."""
        return cls(
            id=tenant.id,
            slug=tenant.slug,
            name=tenant.name,
            revision=tenant.revision,
            created_at=tenant.created_at,
        )


class KeyShown(ResponseModel):
    """An API key without its secret."""

    id: str
    name: str
    scopes: Sequence[Scope]
    subject: str
    profile: str | None
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None

    @classmethod
    def of(cls, key: Key) -> Self:
        """The key as it is shown."""
        return cls(
            id=key.id,
            name=key.name,
            scopes=sorted(key.scopes),
            subject=key.subject,
            profile=key.profile,
            created_at=key.created_at,
            expires_at=key.expires_at,
            revoked_at=key.revoked_at,
        )


class KeyMinted(KeyShown):
    """A key with its text, which is shown this once."""

    key: Annotated[str, Field(description="The key itself; kept nowhere.")]

    @classmethod
    def with_text(cls, key: Key, minted: MintedKey) -> Self:
        """The key as it is shown to whoever asked for it."""
        return cls(**KeyShown.of(key).model_dump(), key=minted.text)


class LimitsShown(ResponseModel):
    """How much of everything the tenant may use."""

    calls_per_second: float
    burst: int
    concurrency: int
    sessions: int
    streams: int
    primitives: int

    @classmethod
    def of(cls, limits: Limits) -> Self:
        """The limits as they are shown."""
        return cls(
            calls_per_second=limits.calls_per_second,
            burst=limits.burst,
            concurrency=limits.concurrency,
            sessions=limits.sessions,
            streams=limits.streams,
            primitives=limits.primitives,
        )


class CeilingsShown(LimitsShown):
    """The most that each limit of the tenant may be; only the operator sets it."""

    defaulted: Annotated[Sequence[str], Field(description="The limits whose ceiling is the installation's default.")]

    @classmethod
    def of_tenant(cls, found: CeilingsInForce) -> Self:
        """The ceilings as they are shown."""
        return cls(**LimitsShown.of(found.limits).model_dump(), defaulted=found.defaulted)


class PolicyShown(ResponseModel):
    """What a call needs, by its safety level, and the tenant's limits."""

    safe: Decision
    moderate: Decision
    dangerous: Decision
    limits: Annotated[LimitsShown, Field(description="As stored.")]
    effective: Annotated[LimitsShown, Field(description="In force: the smaller of each limit and its ceiling.")]
    ceilings: Annotated[LimitsShown, Field(description="The most that each limit may be; set by the operator.")]
    http_origins: Annotated[
        Sequence[str] | None,
        Field(description="The only origins that declared `http` handlers may call; null: any."),
    ]

    @classmethod
    def of(cls, found: BoundedPolicy) -> Self:
        """The policy as it is shown."""
        policy = found.stored
        return cls(
            safe=policy.safe,
            moderate=policy.moderate,
            dangerous=policy.dangerous,
            limits=LimitsShown.of(policy.limits),
            effective=LimitsShown.of(found.limits),
            ceilings=LimitsShown.of(found.ceilings.limits),
            http_origins=policy.http_origins,
        )


class EgressShown(ResponseModel):
    """The private upstreams that the tenant may reach, beside those that every tenant may."""

    allow: Annotated[Sequence[str], Field(description="Each `host:port` in its one spelling, sorted.")]

    @classmethod
    def of(cls, egress: Egress) -> Self:
        """The list as it is shown."""
        return cls(allow=egress.allow)


class EntryShown(ResponseModel):
    """One entry of the audit trail."""

    id: str
    at: datetime
    kind: AuditKind
    principal: str
    action: str
    target: str
    outcome: str
    correlation_id: str
    detail: Mapping[str, object]

    @classmethod
    def of(cls, entry: AuditEntry) -> Self:
        """The entry as it is shown."""
        return cls(
            id=entry.id,
            at=entry.at,
            kind=entry.kind,
            principal=entry.principal,
            action=entry.action,
            target=entry.target,
            outcome=entry.outcome,
            correlation_id=entry.correlation_id,
            detail=entry.detail,
        )


class FaultShown(BaseModel):
    """One place in what was sent that is wrong."""

    pointer: Annotated[str, Field(description="JSON Pointer into the body, or `?name` of a query parameter.")]
    reason: str
    line: int | None = None
    column: int | None = None


class ConflictShown(BaseModel):
    """A name that is taken, and by whom."""

    name: str
    owner: str


class Problem(BaseModel):
    """Why the request was refused (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    code: Annotated[str, Field(description="Stable; one per kind of problem.")]
    correlation_id: str
    instance: str | None = None
    errors: Sequence[FaultShown] | None = None
    conflicts: Sequence[ConflictShown] | None = None
    suggested_prefix: str | None = None


class FindingShown(ResponseModel):
    """One thing that was looked at."""

    check: Annotated[str, Field(description="What was looked at; stable.")]
    status: Verdict
    detail: str
    mend: Annotated[str, Field(description="What to do about it; empty when there is nothing to do.")]

    @classmethod
    def of(cls, finding: Finding) -> Self:
        """The finding as it is shown."""
        return cls(check=finding.check, status=finding.status, detail=finding.detail, mend=finding.mend)


class Examined(ResponseModel):
    """What an examination of the installation found."""

    status: Annotated[Verdict, Field(description="The worst of the findings.")]
    findings: Sequence[FindingShown]


class TenantPage(Page[TenantShown]):
    """Part of the list of tenants, by slug."""


class KeyPage(Page[KeyShown]):
    """Part of a tenant's keys."""


class EntryPage(Page[EntryShown]):
    """Part of a tenant's audit trail, the newest first."""
