"""Ownership of objects by sets of manifests."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Ownership:
    """The set that owns an object; the id of a singleton is the name of its kind.

    `digest` is a MAC of the members that the set applied last.
    """

    kind: str
    id: str
    set: str
    digest: bytes = field(repr=False)
