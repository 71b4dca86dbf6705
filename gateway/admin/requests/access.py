"""Request models of reports on access rules."""

from typing import Annotated

from pydantic import Field

from gateway.admin.requests.primitives import ExplainAs
from gateway.domain.primitives import Family
from gateway.domain.tenancy.access import AccessEffect
from gateway.domain.tenancy.limits import MAX_ACCESS_RULES, MAX_ROLE_RULES
from gateway.web.kinds.rules import AccessRuleSent, RoleRuleSent
from gateway.web.models import GIVEN, Absent, BodyModel

Effect = Annotated[AccessEffect, Field(strict=False)]


class AccessReportOf(BodyModel):
    """Access rules to report on."""

    default: Annotated[Effect | Absent, GIVEN, Field(description="The default; absent means the stored one.")] = None
    rules: Annotated[
        list[AccessRuleSent] | None,
        Field(
            max_length=MAX_ACCESS_RULES, description="The rules to report on; absent or null means the stored rules."
        ),
    ] = None
    roles: Annotated[
        list[RoleRuleSent] | None,
        Field(max_length=MAX_ROLE_RULES, description="The roles to report on; absent or null means the stored roles."),
    ] = None


class AccessCheck(BodyModel):
    """The caller whose access is listed, and the page of the list."""

    client: Annotated[ExplainAs, Field(alias="as", default_factory=ExplainAs, description="The caller.")]
    family: Annotated[
        Annotated[Family, Field(strict=False)] | Absent,
        GIVEN,
        Field(description="Only primitives of this family.", examples=["tool"]),
    ] = None
    limit: Annotated[int, Field(ge=1, le=200, description="The maximum number of items in the response.")] = 50
    cursor: Annotated[
        Annotated[str, Field(max_length=3072)] | None,
        Field(description="The `next_cursor` of the previous response."),
    ] = None
