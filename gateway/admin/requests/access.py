"""Request models of access rules and roles."""

from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from gateway.admin.requests.primitives import ExplainAs
from gateway.domain.members.formats import CALLER, PERSON
from gateway.domain.members.values import check_printable
from gateway.domain.primitives import Family
from gateway.domain.tenancy.access import (
    EVERYONE,
    MAX_ROLES,
    MAX_RULES,
    MAX_WHO,
    AccessEffect,
    Role,
    find_restricting_scopes,
)
from gateway.web.kinds.rules import RuleSent
from gateway.web.models import GIVEN, Absent, BodyModel

Caller = Annotated[str, Field(max_length=300, pattern=CALLER), AfterValidator(check_printable)]
PersonNamed = Annotated[str, Field(max_length=300, pattern=PERSON), AfterValidator(check_printable)]
Effect = Annotated[AccessEffect, Field(strict=False)]


def _everyone() -> list[str]:
    return [EVERYONE]


def _match_all() -> RuleSent:
    return RuleSent.model_validate({})


class AccessRuleSent(BodyModel):
    """A rule that allows or denies the primitives matched by `what` to callers matched by `who` but not by `unless`."""

    effect: Annotated[Effect, Field(description="Deny rules take precedence over allow rules.")]
    who: Annotated[
        list[Caller],
        Field(
            default_factory=_everyone,
            min_length=1,
            max_length=MAX_WHO,
            description="The callers to whom the rule applies if any entry matches: `everyone`, `keys`, "
            "`people`, `key:ID`, `subject:SUBJECT`, `group:ISSUER:GROUP`, `issuer:ISSUER` or `scope:ISSUER:SCOPE`. "
            "Only an allow rule names scopes here.",
        ),
    ]
    unless: Annotated[
        list[Caller],
        Field(
            default_factory=list[str],
            max_length=MAX_WHO,
            description="The callers to whom the rule does not apply. Only a deny rule names scopes here.",
        ),
    ]
    what: Annotated[RuleSent, Field(default_factory=_match_all, description="The primitives; by default, all.")]
    reason: Annotated[
        str,
        Field(max_length=200, description="The reason, for administrators; clients do not see it."),
        AfterValidator(check_printable),
    ] = ""

    @model_validator(mode="after")
    def _check_scopes(self) -> Self:
        restricting = find_restricting_scopes(self.effect, self.who, self.unless)
        if restricting:  # guard: access-scope-permits
            raise ValueError(
                f"{restricting[0]} would take primitives away, and a client escapes it by fewer scopes; name scopes in "
                "`who` of an allow rule or in `unless` of a deny rule"
            )
        return self


class RoleRuleSent(BodyModel):
    """A rule that gives a role to people matched by `who` but not by `unless`."""

    role: Annotated[
        Annotated[Role, Field(strict=False)],
        Field(
            description="The role: `approve` permits decisions about calls of other subjects on the approvals page; "
            "`administer` and `audit` permit, with an access token for the admin API, what the scopes `admin` and "
            "`audit` of a key permit."
        ),
    ]
    who: Annotated[
        list[PersonNamed],
        Field(
            min_length=1,
            max_length=MAX_WHO,
            description="The people who have the role if any entry matches: `people`, `subject:SUBJECT`, "
            "`group:ISSUER:GROUP` or `issuer:ISSUER`.",
        ),
    ]
    unless: Annotated[
        list[PersonNamed],
        Field(default_factory=list[str], max_length=MAX_WHO, description="The people without the role."),
    ]
    reason: Annotated[
        str, Field(max_length=200, description="The reason, for administrators."), AfterValidator(check_printable)
    ] = ""


AccessRulesSent = Annotated[
    list[AccessRuleSent],
    Field(max_length=MAX_RULES, description="The rules; their order has no effect."),
]


class AccessReplace(BodyModel):
    """All access rules of the tenant, which replace the stored ones."""

    default: Annotated[
        Effect, Field(description="The effect for a primitive and a caller to which no rule applies.")
    ] = AccessEffect.ALLOW
    rules: Annotated[AccessRulesSent, Field(default_factory=list[AccessRuleSent])]
    roles: Annotated[
        list[RoleRuleSent] | None,
        Field(
            max_length=MAX_ROLES,
            description="The roles of people; absent or null means the stored ones.",
        ),
    ] = None


class AccessReportOf(BodyModel):
    """Access rules to report on."""

    default: Annotated[Effect | Absent, GIVEN, Field(description="The default; absent means the stored one.")] = None
    rules: Annotated[
        list[AccessRuleSent] | None,
        Field(max_length=MAX_RULES, description="The rules to report on; absent or null means the stored rules."),
    ] = None
    roles: Annotated[
        list[RoleRuleSent] | None,
        Field(max_length=MAX_ROLES, description="The roles to report on; absent or null means the stored roles."),
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
