"""Response models of the admin API. They serialize its responses; the OpenAPI document is generated from them."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import BaseModel, Field

from gateway.admin.fields import (
    CreatedAt,
    Id,
    Name,
)
from gateway.catalog.identity.leaked_keys import FoundKey
from gateway.domain.findings import Finding, Verdict
from gateway.domain.tenancy.keys import Key, KeyMatch, KeyState, MintedKey, Scope
from gateway.domain.tenancy.tenants import DeletedTenant
from gateway.web.kinds.annotations import shown_model
from gateway.web.models import CopiedModel, Page, ResponseModel


class KeyShown(ResponseModel):
    """An API key without its secret."""

    id: Id
    name: Name
    scopes: Annotated[Sequence[Scope], Field(description="The scopes: the permissions of the key.")]
    subject: Annotated[str, Field(description="The principal of the key; rotation keeps it.")]
    profile: Annotated[str | None, Field(description="The only profile where the key is valid; null means all.")]
    created_at: CreatedAt
    expires_at: Annotated[datetime | None, Field(description="The expiry time; null means never.")]
    revoked_at: Annotated[datetime | None, Field(description="The time of revocation; null if it is not revoked.")]
    state: Annotated[KeyState, Field(description="`active`, `expired` or `revoked`.")]
    old_secret_until: Annotated[
        datetime | None,
        Field(description="The time until which the previous secret is valid; null if there is none."),
    ]
    made_by: Annotated[
        Sequence[str],
        Field(
            description="The principals that may know a valid secret: the author of its creation or rotation, and, if "
            "that is a key, the people who made that key; empty for keys of earlier releases."
        ),
    ]
    last_used_at: Annotated[
        datetime | None, Field(description="The time of the last use, to the hour; null if unknown.")
    ]

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
            made_by=key.makers,
            last_used_at=key.last_used_at,
        )


class FoundKeyShown(ResponseModel):
    """A key that was found in the searched text."""

    id: Id
    match: Annotated[
        KeyMatch,
        Field(
            description="`current` and `old`: a secret of the key; `other`: the key exists, but the secret is "
            "not a secret of the key; `unknown`: no key of this installation."
        ),
    ]
    tenant: Annotated[str | None, Field(description="The slug of the tenant; null for an unknown key.")]
    key: Annotated[KeyShown | None, Field(description="The key; null for an unknown one.")]


class KeysChecked(ResponseModel):
    """The keys that were found in the searched text."""

    found: Annotated[Sequence[FoundKeyShown], Field(description="At most 20 keys, in order.")]

    @classmethod
    def of(cls, found: Sequence[FoundKey]) -> Self:
        """Build the response from the checked keys."""
        return cls(
            found=[
                FoundKeyShown(
                    id=one.id,
                    match=one.match,
                    tenant=one.slug,
                    key=None if one.key is None else KeyShown.of(one.key),
                )
                for one in found
            ]
        )


class KeyMinted(KeyShown):
    """A key with its text. Only the responses to creation and rotation contain the text."""

    key: Annotated[str, Field(description="The key; it is returned only once and not stored.")]

    @classmethod
    def with_text(cls, key: Key, minted: MintedKey) -> Self:
        """Build the response from a key and its text."""
        return cls(**KeyShown.of(key).model_dump(), key=minted.text)


class FaultShown(BaseModel):
    """One fault in the request."""

    pointer: Annotated[str, Field(description="JSON Pointer into the body, or `?name` of a query parameter.")]
    reason: Annotated[str, Field(description="The reason why the value is refused.")]
    line: Annotated[int | None, Field(description="The line in the text, from 1; null if unknown.")] = None
    column: Annotated[int | None, Field(description="The column in the text, from 1; null if unknown.")] = None


class ConflictShown(BaseModel):
    """A name that is taken, and its owner."""

    name: Annotated[str, Field(description="The name that is taken.")]
    owner: Annotated[str, Field(description="The owner of the name, such as `source:pets`.")]


class Problem(BaseModel):
    """A problem document: the reason for a refusal (RFC 9457)."""

    type: Annotated[str, Field(description="The URL of the explanation of the code, relative to the gateway.")]
    title: Annotated[str, Field(description="The reason phrase of the HTTP status.")]
    status: Annotated[int, Field(description="The HTTP status of the response.")]
    detail: Annotated[str, Field(description="The explanation of this occurrence of the problem.")]
    code: Annotated[str, Field(description="The stable code of the kind of problem.")]
    correlation_id: Annotated[
        str, Field(description="The correlation id, which the log and the audit trail also contain.")
    ]
    instance: Annotated[str | None, Field(description="The refused request, if the problem names one.")] = None
    errors: Annotated[Sequence[FaultShown] | None, Field(description="The faults in the request.")] = None
    conflicts: Annotated[
        Sequence[ConflictShown] | None, Field(description="The names that are taken, with their owners.")
    ] = None
    suggested_prefix: Annotated[str | None, Field(description="A prefix that avoids every conflict.")] = None


if TYPE_CHECKING:  # a derived class is no type for a checker
    FindingShown = CopiedModel
    DeletedTenantShown = CopiedModel
else:
    FindingShown = shown_model(Finding)
    DeletedTenantShown = shown_model(DeletedTenant)


class Examined(ResponseModel):
    """The results of the health checks of the installation."""

    status: Annotated[Verdict, Field(description="The worst severity of the findings.")]
    findings: Annotated[Sequence[FindingShown], Field(description="The findings, one for each check.")]


class DeletedTenantPage(Page[DeletedTenantShown]):
    """One page of the deleted tenants."""


class KeyPage(Page[KeyShown]):
    """One page of a tenant's keys."""
