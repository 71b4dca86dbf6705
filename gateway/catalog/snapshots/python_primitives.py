"""Python primitives: registered by the operator's own code and added to tenants' catalogs, not stored."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from gateway.domain.identifiers import PrimitiveId
from gateway.domain.primitives import Family, Primitive
from gateway.domain.tenancy.policy import Safety
from gateway.domain.tools import PrimitiveOrigin


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonPrimitive:
    """One primitive registered in Python. `tenants` contains the slugs of the tenants that have it; None means all."""

    family: Family
    name: str
    definition: bytes
    safety: Safety
    safety_reasons: tuple[str, ...]
    tenants: frozenset[str] | None = None


class PythonPrimitives(Protocol):
    """Registry of the Python primitives; `generation` increases with every change."""

    @property
    def generation(self) -> int:
        """Number of changes so far."""
        ...

    def primitives(self) -> Sequence[PythonPrimitive]:
        """The primitives that are registered now."""
        ...


def primitives_for(code: PythonPrimitives | None, slug: str) -> Sequence[Primitive]:
    """The Python primitives of the tenant with this slug."""
    if code is None:
        return ()
    return [_primitive(added) for added in code.primitives() if added.tenants is None or slug in added.tenants]


def split_hidden(
    added: Iterable[Primitive], taken: Iterable[tuple[Family, str]]
) -> tuple[Sequence[Primitive], Sequence[Primitive]]:
    """Split Python primitives into visible ones, and those that a taken name hides."""
    taken_names = frozenset(taken)
    visible_primitives: list[Primitive] = []
    hidden: list[Primitive] = []
    for primitive in added:
        (hidden if (primitive.family, primitive.name) in taken_names else visible_primitives).append(primitive)
    return visible_primitives, hidden


def _primitive(added: PythonPrimitive) -> Primitive:
    mark = hashlib.blake2b(f"{added.family}\0{added.name}".encode(), digest_size=10).hexdigest()
    return Primitive(
        id=PrimitiveId(f"cod_{mark}"),
        family=added.family,
        name=added.name,
        definition=added.definition,
        safety=added.safety,
        safety_reasons=added.safety_reasons,
        assessed=added.safety,
        origin=PrimitiveOrigin.CODE,
    )
