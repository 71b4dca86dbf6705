"""Response models of validated primitives and of tried calls."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, Self

from pydantic import Field

from gateway.domain.json_text import decode_object
from gateway.domain.tenancy.own_primitives import OwnPrimitive, PrimitiveStatus, key_of
from gateway.domain.tenancy.policy import Safety
from gateway.web.models import ResponseModel

Json = Mapping[str, object]


class PrimitiveValid(ResponseModel):
    """The primitive that a request to store it would create; nothing was stored."""

    valid: Annotated[Literal[True], Field(description="Always true; an invalid declaration is refused.")] = True
    name: Annotated[str, Field(description="The name or URI of the primitive.")]
    safety: Annotated[Safety, Field(description="The safety level.")]
    safety_reasons: Annotated[Sequence[str], Field(description="The reasons for this level.")]
    replaces: Annotated[
        str | None, Field(description="The id of the existing primitive with this name; null if there is none.")
    ]
    definition: Annotated[Json, Field(description="The definition that MCP clients would see.")]

    @classmethod
    def of(cls, made: OwnPrimitive, status: PrimitiveStatus, replaces: str | None) -> Self:
        """Build the response from a validated primitive."""
        return cls(
            name=key_of(made),
            safety=status.safety,
            safety_reasons=status.safety_reasons,
            replaces=replaces,
            definition=decode_object(made.definition),
        )


class TriedRequest(ResponseModel):
    """The request of a call, before credentials are added."""

    summary: Annotated[str, Field(description="A readable summary of the call, with the requests of its steps.")]
    method: Annotated[str | None, Field(description="The HTTP method.")]
    url: Annotated[str | None, Field(description="The URL; null if no request is sent.")]
    headers: Annotated[Sequence[tuple[str, str]], Field(description="The headers, without credentials.")]
    body: Annotated[str | None, Field(description="The body as text; for other content, its size.")]


class TrialShown(ResponseModel):
    """A tried call: the request and the result."""

    request: Annotated[TriedRequest, Field(description="The request of the call; an error may have prevented it.")]
    result: Annotated[Json, Field(description="The MCP result object.")]
