"""The collections of all declared kinds: those of the modules of two packages, and plain ones of the other kinds."""

from collections.abc import Sequence
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, TypeGuard

import gateway.catalog.identity.operators as of_operators
import gateway.catalog.kinds as of_tenants
from gateway.catalog.kinds.engines.collection import Collection
from gateway.kinds.index import KINDS, OPERATORS_KINDS
from gateway.store.kinds.rows import rows_of


def _is_collection(one: object) -> TypeGuard[Collection[Any]]:
    return isinstance(one, Collection)


_MODULES = [
    import_module(f"{package.__name__}.{each.name}")
    for package in (of_tenants, of_operators)
    for each in iter_modules(package.__path__)
    if each.name != __name__.rpartition(".")[2]
]
_SPECIAL = {one.kind.name: one for module in _MODULES for one in vars(module).values() if _is_collection(one)}

COLLECTIONS: Sequence[Collection[Any]] = tuple(
    _SPECIAL.get(kind.name) or Collection(kind=kind, rows=rows_of(kind)) for kind in KINDS
)
OPERATORS_COLLECTIONS: Sequence[Collection[Any]] = tuple(_SPECIAL[kind.name] for kind in OPERATORS_KINDS)
