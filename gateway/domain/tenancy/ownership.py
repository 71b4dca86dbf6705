"""Ownership of objects by sets of manifests."""

from dataclasses import dataclass, field
from typing import Annotated

from gateway.domain.members.markers import StoredAs

VOID = b""
"""The digest of secrets that equals that of no secrets."""


@dataclass(frozen=True, slots=True)
class OwningSet:
    """A set of manifests. The operator's sets are apart from those of a tenant's admins, also with equal names."""

    name: str
    is_operators: bool

    def __str__(self) -> str:
        """The set for people."""
        return f"the set {self.name}{' of the operator' if self.is_operators else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ownership:
    """The set that owns an object; the id of a singleton is the name of its kind.

    `digest` is a MAC of the members that the set applied last, and `secrets` one of their secret parts; None if the set
    gave none, and `VOID` if a change by hand may have replaced them.
    """

    kind: str
    id: Annotated[str, StoredAs("object_id")]
    set: Annotated[str, StoredAs("set_name")]
    is_operators: bool = False
    digest: bytes = field(repr=False)
    secrets: bytes | None = field(default=None, repr=False)

    @property
    def owner(self) -> OwningSet:
        """The set."""
        return OwningSet(self.set, self.is_operators)
