"""Response models of the admin API. They serialize its responses; the OpenAPI document is generated from them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, Field

from gateway.domain.findings import Finding, Verdict
from gateway.domain.tenancy.tenants import DeletedTenant
from gateway.web.kinds.annotations import shown_model
from gateway.web.models import CopiedModel, Page, ResponseModel


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
