"""Response models of the admin API. They serialize its responses; the OpenAPI document is generated from them."""

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
    """A response, which contains only declared fields."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)  # see `BodyModel`


S = TypeVar("S", bound=ResponseModel)


class Page(ResponseModel, Generic[S]):
    """One page of a list."""

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
        """Build the response from a tenant."""
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
        """Build the response from a key."""
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
    """A key with its text. Only the responses to creation and rotation contain the text."""

    key: Annotated[str, Field(description="The key itself; kept nowhere.")]

    @classmethod
    def with_text(cls, key: Key, minted: MintedKey) -> Self:
        """Build the response from a key and its text."""
        return cls(**KeyShown.of(key).model_dump(), key=minted.text)


class LimitsShown(ResponseModel):
    """The tenant's limits."""

    calls_per_second: float
    burst: int
    concurrency: int
    sessions: int
    streams: int
    primitives: int

    @classmethod
    def of(cls, limits: Limits) -> Self:
        """Build the response from limits."""
        return cls(
            calls_per_second=limits.calls_per_second,
            burst=limits.burst,
            concurrency=limits.concurrency,
            sessions=limits.sessions,
            streams=limits.streams,
            primitives=limits.primitives,
        )


class CeilingsShown(LimitsShown):
    """The highest value that each limit of the tenant may have; only the operator sets it."""

    defaulted: Annotated[Sequence[str], Field(description="The limits whose ceiling is the installation's default.")]

    @classmethod
    def of_tenant(cls, found: CeilingsInForce) -> Self:
        """Build the response from the ceilings in force."""
        return cls(**LimitsShown.of(found.limits).model_dump(), defaulted=found.defaulted)


class PolicyShown(ResponseModel):
    """The decision for calls of each safety level, and the tenant's limits."""

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
        """Build the response from a policy."""
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
    """The private upstreams that the tenant may reach, beside those that are open to every tenant."""

    allow: Annotated[Sequence[str], Field(description="Each `host:port` in its one spelling, sorted.")]

    @classmethod
    def of(cls, egress: Egress) -> Self:
        """Build the response from the tenant's upstreams."""
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
        """Build the response from an entry."""
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
    """One fault in the request."""

    pointer: Annotated[str, Field(description="JSON Pointer into the body, or `?name` of a query parameter.")]
    reason: str
    line: int | None = None
    column: int | None = None


class ConflictShown(BaseModel):
    """A name that is taken, and its owner."""

    name: str
    owner: str


class Problem(BaseModel):
    """A problem document: the reason of a refusal (RFC 9457)."""

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
    """The result of one check."""

    check: Annotated[str, Field(description="What was looked at; stable.")]
    status: Verdict
    detail: str
    mend: Annotated[str, Field(description="What to do about it; empty when there is nothing to do.")]

    @classmethod
    def of(cls, finding: Finding) -> Self:
        """Build the response from a finding."""
        return cls(check=finding.check, status=finding.status, detail=finding.detail, mend=finding.mend)


class Examined(ResponseModel):
    """The results of an examination of the installation."""

    status: Annotated[Verdict, Field(description="The worst of the findings.")]
    findings: Sequence[FindingShown]


class TenantPage(Page[TenantShown]):
    """One page of the tenants."""


class KeyPage(Page[KeyShown]):
    """One page of a tenant's keys."""


class EntryPage(Page[EntryShown]):
    """One page of a tenant's audit trail, newest first."""
