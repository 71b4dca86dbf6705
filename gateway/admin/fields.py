"""Fields that several models of the admin API share: descriptions, and types with their description."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

UNIQUE_NAME = Field(description="The name; unique in the tenant for objects that a path addresses by name.")
DESCRIPTION = Field(description="The description, for people.")
INCLUDE = Field(description="Items that match any of these rules are included; an empty list includes everything.")
EXCLUDE = Field(description="Items that match any of these rules are excluded.")
SELECTS_FIELDS = Field(
    description="True gives imported tools the argument `_fields`, with which callers select parts of JSON results."
)
SUMMARY_THRESHOLD = Field(
    description="Bytes of JSON or text (4,096 to 262,144) above which a result is a summary, and the tool `read_result`"
    " reads its parts; 0: never."
)
STRUCTURED_ONCE = Field(
    description="True sends JSON results as structured content alone, with a sentence as text, where the revision has"
    " structured content. It is meant for clients that show structured content to their model."
)
REFRESH_POLICY = Field(
    description="Rule for changes that are found at the URL: `manual` proposes each; `additions` activates those that"
    " only add or widen tools and change no text."
)
REFRESH_INTERVAL = Field(description="Seconds between looks at the URL, varied by up to 10 %; null: no schedule.")
CALLS_PER_SECOND = Field(description="The sustained rate of calls per second.")
BURST = Field(description="The number of calls that may arrive at once before the rate applies.")
CONCURRENCY = Field(description="The maximum number of concurrent calls.")
SESSIONS = Field(description="The maximum number of open MCP sessions.")
STREAMS = Field(description="The maximum number of open streams.")
BOUNDED_KEYS = Field(description="The number of keys that the tenant may have; null: no bound.")
BOUNDED_LIFETIME = Field(description="The longest time until the end of a key, in seconds; null: no bound.")
BOUNDED_SCOPES = Field(description="The scopes that the tenant's admins may grant; null: each of their own.")
BOUNDED_ISSUERS = Field(description="True if the tenant's admins may accept issuers.")
PRIMITIVES = Field(description="The maximum number of tools, resources, resource templates and prompts.")

Id = Annotated[str, Field(description="The id; it never changes.")]
Name = Annotated[str, UNIQUE_NAME]
CreatedAt = Annotated[datetime, Field(description="The time of creation.")]
UpdatedAt = Annotated[datetime, Field(description="The time of the last change.")]
