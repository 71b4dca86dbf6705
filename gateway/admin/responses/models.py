"""Response models of the admin API. They serialize its responses; the OpenAPI document is generated from them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Generic, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from gateway.admin.fields import (
    BURST,
    CALLS_PER_SECOND,
    CONCURRENCY,
    PRIMITIVES,
    SESSIONS,
    STREAMS,
    CreatedAt,
    Id,
    Name,
)
from gateway.domain.audit import AuditKind
from gateway.domain.findings import Verdict
from gateway.domain.tenancy.ceilings import CeilingsInForce
from gateway.domain.tenancy.keys import Key, KeyState, MintedKey, Scope


class ResponseModel(BaseModel):
    """A response, which contains only declared fields."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)  # see `BodyModel`


class CopiedModel(ResponseModel):
    """A response whose fields are attributes of one domain object; a validation alias names a different attribute."""

    model_config = ConfigDict(from_attributes=True, populate_by_name=True)

    @classmethod
    def of(cls, copied: object) -> Self:
        """Build the response from the attributes of an object."""
        return cls.model_validate(copied)


S = TypeVar("S", bound=ResponseModel)


class Page(ResponseModel, Generic[S]):
    """One page of a list."""

    items: Annotated[Sequence[S], Field(description="This part of the list.")]
    next_cursor: Annotated[str | None, Field(description="For the next part; null on the last.")]


class TenantShown(CopiedModel):
    """A tenant."""

    id: Id
    slug: Annotated[str, Field(description="Its name in URLs, which never changes.")]
    name: Name
    revision: Annotated[int, Field(description="Rises with every change of the tenant.")]
    created_at: CreatedAt


class KeyShown(ResponseModel):
    """An API key without its secret."""

    id: Id
    name: Name
    scopes: Annotated[Sequence[Scope], Field(description="What it may be used for.")]
    subject: Annotated[str, Field(description="The principal of the key; rotation keeps it.")]
    profile: Annotated[str | None, Field(description="The only profile that the key may be used at; null: any.")]
    created_at: CreatedAt
    expires_at: Annotated[datetime | None, Field(description="When it ends; null: never.")]
    revoked_at: Annotated[datetime | None, Field(description="When it was ended; null: it was not.")]
    state: Annotated[KeyState, Field(description="`active`, `expired` or `revoked`.")]
    old_secret_until: Annotated[
        datetime | None, Field(description="When the secret before the last rotation ends; null: there is none.")
    ]
    last_used_at: Annotated[datetime | None, Field(description="The hour of its last use; null: none is known.")]

    @classmethod
    def of(cls, key: Key) -> Self:
        """Build the response from a key."""
        *_, oldest = key.secrets
        return cls(
            id=key.id,
            name=key.name,
            scopes=sorted(key.scopes),
            subject=key.subject,
            profile=key.profile,
            created_at=key.created_at,
            expires_at=key.expires_at,
            revoked_at=key.revoked_at,
            state=key.state,
            old_secret_until=oldest.ends_at,
            last_used_at=key.last_used_at,
        )


class KeyMinted(KeyShown):
    """A key with its text. Only the responses to creation and rotation contain the text."""

    key: Annotated[str, Field(description="The key itself; kept nowhere.")]

    @classmethod
    def with_text(cls, key: Key, minted: MintedKey) -> Self:
        """Build the response from a key and its text."""
        return cls(**KeyShown.of(key).model_dump(), key=minted.text)


class LimitsShown(CopiedModel):
    """The tenant's limits."""

    calls_per_second: Annotated[float, CALLS_PER_SECOND]
    burst: Annotated[int, BURST]
    concurrency: Annotated[int, CONCURRENCY]
    sessions: Annotated[int, SESSIONS]
    streams: Annotated[int, STREAMS]
    primitives: Annotated[int, PRIMITIVES]


class CeilingsShown(LimitsShown):
    """The highest value that each limit of the tenant may have; only the operator sets it."""

    defaulted: Annotated[Sequence[str], Field(description="The limits whose ceiling is the installation's default.")]

    @classmethod
    def of_tenant(cls, found: CeilingsInForce) -> Self:
        """Build the response from the ceilings in force."""
        return cls(**LimitsShown.of(found.limits).model_dump(), defaulted=found.defaulted)


class EgressShown(CopiedModel):
    """The private upstreams that the tenant may reach, beside those that are open to every tenant."""

    allow: Annotated[Sequence[str], Field(description="Each `host:port` in its one spelling, sorted.")]


class EntryShown(CopiedModel):
    """One entry of the audit trail."""

    id: Id
    at: Annotated[datetime, Field(description="When it was written.")]
    kind: Annotated[
        AuditKind, Field(description="Whether the entry is of a change, of a call, or of the intent to call.")
    ]
    principal: Annotated[str, Field(description="Who did it, such as `key:key_…` or `operator`.")]
    action: Annotated[str, Field(description="What was done, such as `call` or `key.create`.")]
    target: Annotated[str, Field(description="What it was done to, by name or id.")]
    outcome: Annotated[str, Field(description="`ok`, or the code of the error that it ended with.")]
    correlation_id: Annotated[
        str, Field(description="The id of the request, which the log and the audit trail have too.")
    ]
    detail: Annotated[Mapping[str, object], Field(description="What was found or done, in particular.")]


class FaultShown(BaseModel):
    """One fault in the request."""

    pointer: Annotated[str, Field(description="JSON Pointer into the body, or `?name` of a query parameter.")]
    reason: Annotated[str, Field(description="What is wrong there.")]
    line: Annotated[int | None, Field(description="The line in the text, from 1; null where there is none.")] = None
    column: Annotated[int | None, Field(description="The column in the text, from 1; null where there is none.")] = None


class ConflictShown(BaseModel):
    """A name that is taken, and its owner."""

    name: Annotated[str, Field(description="The name that is taken.")]
    owner: Annotated[str, Field(description="What has the name, such as `source:pets`.")]


class Problem(BaseModel):
    """A problem document: the reason of a refusal (RFC 9457)."""

    type: Annotated[str, Field(description="Where the code is explained, relative to the gateway's documentation.")]
    title: Annotated[str, Field(description="What the status is called.")]
    status: Annotated[int, Field(description="The HTTP status of the answer.")]
    detail: Annotated[str, Field(description="What was found or done, in particular.")]
    code: Annotated[str, Field(description="Stable; one per kind of problem.")]
    correlation_id: Annotated[
        str, Field(description="The id of the request, which the log and the audit trail have too.")
    ]
    instance: Annotated[str | None, Field(description="The request that was refused, where the problem names one.")] = (
        None
    )
    errors: Annotated[Sequence[FaultShown] | None, Field(description="Every place that is wrong.")] = None
    conflicts: Annotated[
        Sequence[ConflictShown] | None, Field(description="The names that are taken, and by whom.")
    ] = None
    suggested_prefix: Annotated[str | None, Field(description="A prefix under which no name would be taken.")] = None


class FindingShown(CopiedModel):
    """The result of one check."""

    check: Annotated[str, Field(description="What was looked at; stable.")]
    status: Annotated[Verdict, Field(description="How it is.")]
    detail: Annotated[str, Field(description="What was found or done, in particular.")]
    mend: Annotated[str, Field(description="What to do about it; empty when there is nothing to do.")]


class Examined(ResponseModel):
    """The results of an examination of the installation."""

    status: Annotated[Verdict, Field(description="The worst of the findings.")]
    findings: Annotated[Sequence[FindingShown], Field(description="One for each thing that was looked at.")]


class TenantPage(Page[TenantShown]):
    """One page of the tenants."""


class KeyPage(Page[KeyShown]):
    """One page of a tenant's keys."""


class EntryPage(Page[EntryShown]):
    """One page of a tenant's audit trail, newest first."""
