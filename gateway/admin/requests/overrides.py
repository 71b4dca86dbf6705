"""Request models of tool changes, including overrides of imported tools.

The catalog validates an override against its operation.
"""

from typing import Annotated

from pydantic import Field

from gateway.admin.fields import DESCRIPTION
from gateway.admin.openapi.formats import PATH, POINTER, TOOL_NAME
from gateway.admin.requests.models import BodyModel
from gateway.admin.requests.primitives import PrimitiveUpdate, Text

_MOST_PINNED = 200
_MOST_PATHS = 100

Pointer = Annotated[str, Field(max_length=512, pattern=POINTER, description="A JSON Pointer.")]
Path = Annotated[str, Field(max_length=512, pattern=PATH, description="A pointer; `*` is every part.")]
Paths = Annotated[list[Path], Field(min_length=1, max_length=_MOST_PATHS)]


class HintsSent(BodyModel):
    """A tool's annotations for clients (hints about its effects). Hints that are not sent have the document's."""

    readOnlyHint: Annotated[bool | None, Field(description="Whether it only reads.")] = None  # noqa: N815  # the protocol's own names
    destructiveHint: Annotated[bool | None, Field(description="Whether it may destroy something.")] = None  # noqa: N815
    idempotentHint: Annotated[bool | None, Field(description="Whether doing it twice is as doing it once.")] = None  # noqa: N815
    openWorldHint: Annotated[  # noqa: N815
        bool | None, Field(description="Whether it reaches beyond the system it belongs to.")
    ] = None


class ResultSent(BodyModel):
    """The reduction of a result: `pointer` selects a part, then only paths of `keep` stay, then paths of `drop` go."""

    pointer: Annotated[
        Pointer | None,
        Field(description="The part of the answer that is kept; what is not sent keeps the whole answer."),
    ] = None
    keep: Annotated[Paths | None, Field(description="The only paths that stay in the answer.")] = None
    drop: Annotated[Paths | None, Field(description="Paths that are left out of the answer.")] = None


class ToolUpdate(PrimitiveUpdate):
    """Changes of a tool; absent fields keep their value.

    `definition` and `handler` are for the tenant's own tools. The fields from `name` on are for imported tools. Changes
    of an imported tool are stored as an override; null restores the document's value.
    """

    enabled: Annotated[bool | None, Field(description="False: not available. Null, of imported tools: true.")] = None
    name: Annotated[
        str | None,
        Field(pattern=TOOL_NAME, description="The old name leads to the tool for 30 more days."),
    ] = None
    title: Annotated[
        str | None, Field(min_length=1, max_length=200, description="What a person reads instead of the name.")
    ] = None
    description: Annotated[str | None, Field(min_length=1, max_length=16_384), DESCRIPTION] = None
    hidden: Annotated[
        bool | None,
        Field(description="Not listed and not for clients to call; handlers and `call_endpoint` still may."),
    ] = None
    annotations: Annotated[HintsSent | None, Field(description="Hints to clients about the tool's effects.")] = None
    pinned: Annotated[
        dict[Text, object] | None,
        Field(max_length=_MOST_PINNED, description="Arguments with a value that no caller sees or changes."),
    ] = None
    result: Annotated[ResultSent | None, Field(description="How JSON answers are cut.")] = None


OWN_FIELDS = ("definition", "handler")
"""Fields that only the tenant's own tools accept."""

IMPORTED_FIELDS = ("name", "title", "description", "hidden", "annotations", "pinned", "result")
"""Fields that only imported tools accept."""
