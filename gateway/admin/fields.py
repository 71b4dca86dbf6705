"""Field descriptions, and types with a description, that several models of the admin API share."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

UNIQUE_NAME = Field(description="The name; unique in the tenant for objects that a path addresses by name.")
DESCRIPTION = Field(description="The description, for people.")
INCLUDE = Field(description="Items that match any of these rules are included; an empty list includes everything.")
EXCLUDE = Field(description="Items that match any of these rules are excluded.")
REFRESH_POLICY = Field(
    description="The handling of a changed document at the URL: `manual` proposes every change; `additions` activates"
    " changes that only add tools, or widen some without new text."
)
REFRESH_INTERVAL = Field(
    description="Seconds between scheduled refreshes from the URL, varied by up to 10 %; null: no schedule."
)
CALLS_PER_SECOND = Field(description="The sustained rate of calls per second.")
BURST = Field(description="The number of calls that may arrive at once before the rate applies.")
CONCURRENCY = Field(description="The maximum number of concurrent calls.")
SESSIONS = Field(description="The maximum number of open MCP sessions.")
STREAMS = Field(description="The maximum number of open streams.")
PRIMITIVES = Field(description="The maximum number of tools, resources, resource templates and prompts.")

Id = Annotated[str, Field(description="The id; it never changes.")]
Name = Annotated[str, UNIQUE_NAME]
CreatedAt = Annotated[datetime, Field(description="The time of creation.")]
UpdatedAt = Annotated[datetime, Field(description="The time of the last change.")]
