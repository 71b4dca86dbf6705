"""All declared kinds: those of the modules of each capability, in their order."""

from collections.abc import Sequence
from typing import Any, TypeGuard

from gateway.kinds import credentials, deliveries, identity, operators, primitives, selections, sources, updates
from gateway.kinds.kind import Kind

_MODULES = (primitives, selections, updates, deliveries, identity, operators, sources, credentials)


def _is_kind(one: object) -> TypeGuard[Kind[Any]]:
    return isinstance(one, Kind)


EVERY_KIND: Sequence[Kind[Any]] = tuple(one for module in _MODULES for one in vars(module).values() if _is_kind(one))
"""All kinds, also those whose objects are created by hand."""
_ALL = [one for one in EVERY_KIND if one.has_collection]

KINDS: Sequence[Kind[Any]] = tuple(one for one in _ALL if not one.is_operators)
"""The kinds of a tenant's objects."""
OPERATORS_KINDS: Sequence[Kind[Any]] = tuple(one for one in _ALL if one.is_operators)
"""The kinds whose objects belong to no tenant."""
