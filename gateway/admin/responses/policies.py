"""Response models of reports on the rules of a tenant."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from gateway.web.models import CopiedModel, ResponseModel


class RuleMatchesShown(CopiedModel):
    """The current primitives that one rule matches, regardless of the arguments of their calls."""

    rule: Annotated[int, Field(description="Number of the rule, from 1.")]
    count: Annotated[int, Field(description="The number of primitives that the rule matches.")]
    names: Annotated[Sequence[str], Field(description="The first 50 matching primitives.")]
    warnings: Annotated[Sequence[str], Field(description="Reasons to doubt that the rule has the intended effect.")]


class RuleReport(ResponseModel):
    """The primitives that the rules match."""

    rules: Annotated[Sequence[RuleMatchesShown], Field(description="One entry for each rule, in order.")]
