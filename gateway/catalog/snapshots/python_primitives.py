"""What the operator's own code adds to tenants' catalogs: primitives that are registered, not stored."""

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
    """One primitive of code; `tenants` are the slugs of those that have it, None stands for all."""

    family: Family
    name: str
    definition: bytes
    safety: Safety
    safety_reasons: tuple[str, ...]
    tenants: frozenset[str] | None = None


class PythonPrimitives(Protocol):
    """Everything that code has registered; the generation rises with every change of it."""

    @property
    def generation(self) -> int:
        """How often it has changed."""
        ...

    def primitives(self) -> Sequence[PythonPrimitive]:
        """What is registered now."""
        ...


def primitives_for(code: PythonPrimitives | None, slug: str) -> Sequence[Primitive]:
    """What code adds to the tenant of this slug, as primitives."""
    if code is None:
        return ()
    return [_primitive(added) for added in code.primitives() if added.tenants is None or slug in added.tenants]


def split_hidden(
    added: Iterable[Primitive], taken: Iterable[tuple[Family, str]]
) -> tuple[Sequence[Primitive], Sequence[Primitive]]:
    """Those of code's primitives that clients see, and those that hide behind a name of the tenant's own."""
    names = frozenset(taken)
    seen: list[Primitive] = []
    hidden: list[Primitive] = []
    for primitive in added:
        (hidden if (primitive.family, primitive.name) in names else seen).append(primitive)
    return seen, hidden


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
