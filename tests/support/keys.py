"""Keys as tests of the catalog create them."""

from typing import Any

from gateway.domain.tenancy.keys import Key, Scope
from gateway.kinds.identity import KEY


def new_key(*scopes: Scope, **members: Any) -> Key:
    """A key that is not stored, with an id of its own; by default, one of MCP clients."""
    return KEY.make("", {"name": "key", "scopes": frozenset(scopes or {Scope.MCP}), **members})
