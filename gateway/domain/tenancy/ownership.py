"""Ownership of objects by sets of manifests."""

from dataclasses import dataclass, field
from typing import Annotated

from gateway.domain.members.markers import StoredAs

VOID = b""
"""The digest of secrets that equals that of no secrets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ownership:
    """The set that owns an object; the id of a singleton is the name of its kind.

    `digest` is a MAC of the members that the set applied last, and `secrets` one of their secret parts; None if the set
    gave none, and `VOID` if a change by hand may have replaced them.
    """

    kind: str
    id: Annotated[str, StoredAs("object_id")]
    set: Annotated[str, StoredAs("set_name")]
    digest: bytes = field(repr=False)
    secrets: bytes | None = field(default=None, repr=False)
