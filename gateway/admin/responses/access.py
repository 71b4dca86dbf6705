"""Response models of reports on access rules and roles."""

from collections.abc import Sequence
from typing import Annotated, Self

from pydantic import Field

from gateway.admin.responses.policies import RuleReport
from gateway.catalog.snapshots.access_report import AccessFinding
from gateway.domain.tenancy.access import Role
from gateway.web.models import Page, ResponseModel


class AccessReport(RuleReport):
    """The primitives that the rules match, and warnings of the rules as a whole and of the roles."""

    warnings: Annotated[Sequence[str], Field(description="Reasons to doubt that the rules have the intended effect.")]


class AccessFound(ResponseModel):
    """The access of one caller to one primitive."""

    family: Annotated[str, Field(description="The family.")]
    name: Annotated[str, Field(description="The name, URI or URI template.")]
    source: Annotated[str, Field(description="The name of the source; empty if it has none.")]
    allowed: Annotated[bool, Field(description="True if the caller may list and use the primitive.")]
    rule: Annotated[
        int | None, Field(description="The number of the deciding rule, from 1; null if the default decided.")
    ]
    reason: Annotated[str, Field(description="The decision in words.")]

    @classmethod
    def of(cls, found: AccessFinding) -> Self:
        """Build the response from a finding."""
        return cls(
            family=found.family,
            name=found.name,
            source=found.source,
            allowed=found.verdict.is_allowed,
            rule=found.verdict.rule,
            reason=found.reason,
        )


class AccessPage(Page[AccessFound]):
    """One page of the primitives that one caller may or may not use."""

    roles: Annotated[Sequence[Role], Field(description="The roles of the caller; a key has scopes instead.")]
