"""SQL that one store of a test process has compiled is used by the next one, which saves half a millisecond each.

A production process has one store. The dialects of all stores differ in nothing that a compilation reads: the test
process has one PostgreSQL.
"""

from typing import Any, cast

from sqlalchemy.engine.base import Engine
from sqlalchemy.util import LRUCache

from gateway.store.database.dialect import GatewayDialect

_MAX_STATEMENTS = 3_000


def _is_equal(_: GatewayDialect, other: object) -> bool:
    return type(other) is GatewayDialect


def _hash(_: GatewayDialect) -> int:
    return hash(GatewayDialect)


def share_compiled_statements() -> None:
    """Give every engine of this process the same cache, whose keys name the dialect."""
    compiled: LRUCache[Any, Any] = LRUCache(_MAX_STATEMENTS)
    cast("Any", Engine)._compiled_cache = property(lambda _: compiled, lambda _, __: None)
    dialect = cast("Any", GatewayDialect)
    dialect.__eq__, dialect.__hash__ = _is_equal, _hash
