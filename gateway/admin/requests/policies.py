"""Request models of the report on a tenant's policy."""

from typing import Annotated

from pydantic import Field

from gateway.domain.tenancy.limits import MAX_POLICY_RULES
from gateway.web.kinds.rules import PolicyRuleSent
from gateway.web.models import BodyModel


class RulesCheck(BodyModel):
    """Rules to report on."""

    rules: Annotated[
        list[PolicyRuleSent] | None,
        Field(max_length=MAX_POLICY_RULES, description="The rules to test; absent or null means the stored rules."),
    ] = None
