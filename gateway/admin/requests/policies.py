"""Request models of a tenant's policy."""

from typing import Annotated

from pydantic import AfterValidator, Field, StrictBool, StrictFloat, StrictInt

from gateway.admin.requests.models import LimitsUpdate
from gateway.admin.requests.primitives import Level, Text
from gateway.definitions.policy.checks import MAX_CONDITIONS, MAX_POINTERS, MAX_RULES, MAX_VALUE_LENGTH, MAX_VALUES
from gateway.domain.members.formats import POINTER
from gateway.domain.members.values import check_printable
from gateway.domain.tenancy.policy import ConditionOperator, Decision
from gateway.web.models import GIVEN, Absent, BodyModel

Value = Annotated[str, Field(max_length=MAX_VALUE_LENGTH)] | StrictBool | StrictInt | StrictFloat
Needed = Annotated[
    Decision,
    Field(strict=False, description="`confirm` asks the user through the client; `approve` asks another person."),
]


AsShown = Annotated[
    LimitsUpdate | Absent,
    GIVEN,
    Field(
        description="Ignored, so that a policy can be sent back as it was returned.",
        json_schema_extra={"readOnly": True},
    ),
]


class ConditionSent(BodyModel):
    """A condition on one argument. If the argument is missing or has another type, the stricter decision applies."""

    pointer: Annotated[
        str, Field(min_length=1, max_length=512, pattern=POINTER, description="JSON Pointer into the arguments.")
    ]
    operator: Annotated[ConditionOperator, Field(strict=False, description="The comparison; see docs/policy.md.")]
    value: Annotated[
        Value | Annotated[list[Value], Field(min_length=1, max_length=MAX_VALUES)],
        Field(description="The value to compare with; a list for `in`, true or false for `exists`."),
    ]


class PolicyRuleSent(BodyModel):
    """A rule: the decision for calls that match every sent member."""

    tool: Annotated[
        Text | None,
        Field(description="Name or shell pattern of a tool, prompt, resource URI or operation (`METHOD path`)."),
    ] = None
    source: Annotated[Text | None, Field(description="Name of the source of the primitive or of its operation.")] = None
    profile: Annotated[Text | None, Field(description="Name of a profile; `default` is the tenant's own URL.")] = None
    level: Annotated[Level | None, Field(description="Safety level.")] = None
    when: Annotated[
        list[ConditionSent],
        Field(
            default_factory=list[ConditionSent],
            max_length=MAX_CONDITIONS,
            description="Conditions on the arguments; all must be true.",
        ),
    ]
    decision: Needed
    reason: Annotated[
        str,
        Field(max_length=200, description="The reason; the caller and the approver see it."),
        AfterValidator(check_printable),
    ] = ""


Recorded = Annotated[
    list[Annotated[str, Field(max_length=512, pattern=POINTER)]],
    Field(default_factory=list[str], max_length=MAX_POINTERS),
]


class RecordingRuleSent(BodyModel):
    """The arguments, by JSON Pointer, that the audit trail records of calls that match `tool` and `source`.

    `*` in a pointer matches any member or element. `drop` takes precedence over `hash`, and `hash` over `keep`.
    """

    tool: Annotated[Text | None, Field(description="Name or shell pattern of a tool, prompt or resource URI.")] = None
    source: Annotated[Text | None, Field(description="Name of the source of the primitive.")] = None
    keep: Annotated[
        Recorded, Field(description="Pointers to arguments that are recorded unchanged; the empty pointer means all.")
    ]
    hash: Annotated[
        Recorded, Field(description="Pointers to arguments that are recorded as a MAC; equal values have equal MACs.")
    ]
    drop: Annotated[Recorded, Field(description="Pointers to arguments whose value is not recorded.")]


class PolicyUpdate(BodyModel):
    """Changes of decisions by safety level, of rules, and of the tenant's limits; absent fields keep their value."""

    safe: Annotated[Needed | Absent, GIVEN] = None
    moderate: Annotated[Needed | Absent, GIVEN] = None
    dangerous: Annotated[Needed | Absent, GIVEN] = None
    limits: Annotated[LimitsUpdate | Absent, GIVEN, Field(description="The tenant's limits.")] = None
    http_origins: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=300)]] | None,
        Field(
            max_length=200,
            description="The only origins that declared `http` handlers may call, such as https://api.example.com; "
            "null permits all.",
        ),
    ] = None
    rules: Annotated[
        list[PolicyRuleSent] | Absent,
        GIVEN,
        Field(
            max_length=MAX_RULES,
            description="The rules; the first match decides, otherwise the safety level. They replace all rules of "
            "the tenant.",
        ),
    ] = None
    recorded_arguments: Annotated[
        list[RecordingRuleSent] | Absent,
        GIVEN,
        Field(
            max_length=MAX_RULES,
            description="The rules for arguments in the audit trail; the first match applies, otherwise none is "
            "recorded. They replace all rules of the tenant.",
        ),
    ] = None
    effective: AsShown = None
    ceilings: AsShown = None


class RulesCheck(BodyModel):
    """Rules to report on."""

    rules: Annotated[
        list[PolicyRuleSent] | None,
        Field(max_length=MAX_RULES, description="The rules to test; absent or null means the stored rules."),
    ] = None
