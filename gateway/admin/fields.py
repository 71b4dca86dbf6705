"""Field descriptions, and types with a description, that several models of the admin API share."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

UNIQUE_NAME = Field(description="The name; unique in the tenant for objects that a path addresses by name.")

Id = Annotated[str, Field(description="The id; it never changes.")]
Name = Annotated[str, UNIQUE_NAME]
CreatedAt = Annotated[datetime, Field(description="The time of creation.")]
