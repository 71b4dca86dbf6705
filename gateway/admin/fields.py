"""Fields that several models of the admin API have: descriptions, and types with their description."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

UNIQUE_NAME = Field(description="Its name, unique in the tenant where it addresses something.")
DESCRIPTION = Field(description="What it is for, in words.")
INCLUDE = Field(description="What matches one of these rules is taken; without any, everything.")
EXCLUDE = Field(description="What matches one of these rules is left out.")
CALLS_PER_SECOND = Field(description="How many calls a second the tenant may make in the long run.")
BURST = Field(description="How many calls may come at once before the rate holds them back.")
CONCURRENCY = Field(description="How many calls may run at the same time.")
SESSIONS = Field(description="How many MCP sessions may be open at the same time.")
STREAMS = Field(description="How many streams may be open at the same time.")
PRIMITIVES = Field(description="How many tools, resources, templates and prompts the tenant may have.")

Id = Annotated[str, Field(description="Its id, which never changes.")]
Name = Annotated[str, UNIQUE_NAME]
CreatedAt = Annotated[datetime, Field(description="When it was made.")]
UpdatedAt = Annotated[datetime, Field(description="When it was changed last.")]
