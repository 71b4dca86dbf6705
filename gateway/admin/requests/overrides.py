"""What a request may hold about tools, imported ones among them; what an operation can do is judged further in."""

from typing import Annotated

from pydantic import Field

from gateway.admin.openapi.formats import PATH, POINTER, TOOL_NAME
from gateway.admin.requests.models import BodyModel
from gateway.admin.requests.primitives import PrimitiveUpdate, Text

_MOST_PINNED = 200
_MOST_PATHS = 100

Pointer = Annotated[str, Field(max_length=512, pattern=POINTER, description="A JSON Pointer.")]
Path = Annotated[str, Field(max_length=512, pattern=PATH, description="A pointer; `*` is every part.")]
Paths = Annotated[list[Path], Field(min_length=1, max_length=_MOST_PATHS)]


class HintsSent(BodyModel):
    """What clients are told of a tool's effects; what is not sent is the document's."""

    readOnlyHint: bool | None = None  # noqa: N815  # the protocol's own names
    destructiveHint: bool | None = None  # noqa: N815
    idempotentHint: bool | None = None  # noqa: N815
    openWorldHint: bool | None = None  # noqa: N815


class ResultSent(BodyModel):
    """How a JSON answer is cut: the part at a pointer, then only some paths of it, then without some."""

    pointer: Pointer | None = None
    keep: Paths | None = None
    drop: Paths | None = None


class ToolUpdate(PrimitiveUpdate):
    """What may change of a tool; absent fields keep their value.

    `definition` and `handler` are for tools of the tenant's own. The fields from `name` on are for imported tools, of
    which a change is stored as an override; null takes such a field back to what the document says.
    """

    enabled: Annotated[bool | None, Field(description="Whether anybody has it. Null, of imported tools: true.")] = None
    name: Annotated[
        str | None,
        Field(pattern=TOOL_NAME, description="The old name leads to the tool for 30 more days."),
    ] = None
    title: Annotated[str | None, Field(min_length=1, max_length=200)] = None
    description: Annotated[str | None, Field(min_length=1, max_length=16_384)] = None
    hidden: Annotated[
        bool | None,
        Field(description="Not listed and not for clients to call; handlers and `call_endpoint` still may."),
    ] = None
    annotations: HintsSent | None = None
    pinned: Annotated[
        dict[Text, object] | None,
        Field(max_length=_MOST_PINNED, description="Arguments with a value that no caller sees or changes."),
    ] = None
    result: ResultSent | None = None


OWN_FIELDS = ("definition", "handler")
"""What only tools of the tenant's own have."""

IMPORTED_FIELDS = ("name", "title", "description", "hidden", "annotations", "pinned", "result")
"""What only imported tools have."""
