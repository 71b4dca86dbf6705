"""Request models of tool changes, including overrides of imported tools.

The catalog validates an override against its operation.
"""

from typing import Annotated

from pydantic import Field

from gateway.admin.fields import DESCRIPTION
from gateway.admin.requests.limits import MAX_PINNED
from gateway.admin.requests.primitives import Definition, HandlerObject, Level, Text
from gateway.definitions.limits import MAX_PATHS
from gateway.domain.members.formats import PATH, POINTER, TOOL_NAME
from gateway.web.models import GIVEN, Absent, BodyModel

Pointer = Annotated[str, Field(max_length=512, pattern=POINTER, description="A JSON Pointer.")]
Path = Annotated[str, Field(max_length=512, pattern=PATH, description="A JSON Pointer in which `*` matches any part.")]
Paths = Annotated[list[Path], Field(min_length=1, max_length=MAX_PATHS)]


class HintsSent(BodyModel):
    """A tool's annotations for clients. A hint that is absent keeps its value from the imported document."""

    readOnlyHint: Annotated[bool | None, Field(description="True if the tool only reads.")] = None  # noqa: N815  # names as in the MCP specification
    destructiveHint: Annotated[bool | None, Field(description="True if the tool may delete or overwrite data.")] = None  # noqa: N815
    idempotentHint: Annotated[bool | None, Field(description="True if repeated calls have no further effect.")] = None  # noqa: N815
    openWorldHint: Annotated[  # noqa: N815
        bool | None, Field(description="True if the tool interacts with external systems.")
    ] = None


class ResultSent(BodyModel):
    """The projection of a result: `pointer` selects a part, `keep` lists paths to keep, and `drop` paths to remove."""

    pointer: Annotated[
        Pointer | None,
        Field(description="The part of the response that is kept; by default the whole response."),
    ] = None
    keep: Annotated[Paths | None, Field(description="The paths that are kept; by default all.")] = None
    drop: Annotated[Paths | None, Field(description="The paths that are removed.")] = None


class ToolUpdate(BodyModel):
    """Changes of a tool; absent fields keep their value.

    `definition` and `handler` are for the tenant's own tools; `name`, `title`, `description`, `hidden`, `annotations`,
    `pinned` and `result` are for imported tools. Changes of an imported tool are stored as an override; null restores
    the document's value.
    """

    definition: Annotated[Definition | Absent, GIVEN] = None
    handler: Annotated[HandlerObject | Absent, GIVEN] = None
    safety: Annotated[
        Level | None, Field(description="The declared safety level; null restores the level that the gateway assesses.")
    ] = None
    enabled: Annotated[
        bool | None,
        Field(description="False: no principal can list or use the item. Null resets an imported tool to true."),
    ] = None
    name: Annotated[
        str | None,
        Field(pattern=TOOL_NAME, description="The name; the old name keeps working for 30 days."),
    ] = None
    title: Annotated[
        str | None,
        Field(min_length=1, max_length=200, description="The title that user interfaces show instead of the name."),
    ] = None
    description: Annotated[str | None, Field(min_length=1, max_length=16_384), DESCRIPTION] = None
    hidden: Annotated[
        bool | None,
        Field(
            description="True hides the tool from the lists and calls of clients; handlers and `call_endpoint` can "
            "still call it."
        ),
    ] = None
    annotations: Annotated[HintsSent | None, Field(description="Hints to clients about the tool's effects.")] = None
    pinned: Annotated[
        dict[Text, object] | None,
        Field(
            max_length=MAX_PINNED, description="Arguments with a fixed value, which callers can neither see nor send."
        ),
    ] = None
    result: Annotated[ResultSent | None, Field(description="The projection of JSON responses.")] = None


OWN_FIELDS = ("definition", "handler")
"""Fields that only the tenant's own tools accept."""

IMPORTED_FIELDS = ("name", "title", "description", "hidden", "annotations", "pinned", "result")
"""Fields that only imported tools accept."""
