"""Declarations of the fields of stored objects that audit entries of changes treat specially.

`gateway.definitions.changed_fields` records every other field. Bytes without a declaration are concealed.
"""

from enum import Enum, auto
from typing import Annotated, TypeVar

T = TypeVar("T")


class Recording(Enum):
    """Treatment of a field in the audit entry of a change."""

    CONCEALED = auto()
    OMITTED = auto()
    JSON = auto()


Concealed = Annotated[T, Recording.CONCEALED]
"""A field that may contain a secret: an entry has a fingerprint of it, which only shows that it changed."""
Omitted = Annotated[T, Recording.OMITTED]
"""State that the gateway keeps, or a digest of a secret: no entry has it."""
JsonText = Annotated[T, Recording.JSON]
"""JSON as bytes that clients can read: an entry has its members."""
