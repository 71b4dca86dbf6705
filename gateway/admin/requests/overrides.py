"""Request models of tool changes, including overrides of imported tools.

The catalog validates an override against its operation.
"""

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
    """A tool's annotations for clients (hints about its effects). Hints that are not sent have the document's."""

    readOnlyHint: bool | None = None  # noqa: N815  # the protocol's own names
    destructiveHint: bool | None = None  # noqa: N815
    idempotentHint: bool | None = None  # noqa: N815
    openWorldHint: bool | None = None  # noqa: N815


class ResultSent(BodyModel):
    """The reduction of a result: `pointer` selects a part, then only paths of `keep` stay, then paths of `drop` go."""

    pointer: Pointer | None = None
    keep: Paths | None = None
    drop: Paths | None = None


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
"""Fields that only the tenant's own tools accept."""

IMPORTED_FIELDS = ("name", "title", "description", "hidden", "annotations", "pinned", "result")
"""Fields that only imported tools accept."""
