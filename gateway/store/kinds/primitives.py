"""Rows of a tenant's own primitives: one table, in which the family is fixed for each kind."""

from collections.abc import Mapping
from typing import Any

from gateway.domain.primitives import Family
from gateway.kinds.kind import Kind, T
from gateway.kinds.primitives import PROMPT, RESOURCE, TEMPLATE, TOOL
from gateway.store.kinds.row_mapper import RowMapper
from gateway.store.kinds.rows import Rows
from gateway.store.tables import primitives


def _rows(kind: Kind[T]) -> Rows[T]:
    return Rows(kind, RowMapper(kind.of, primitives, fixed={"kind": kind.name}))


TOOLS, RESOURCES, TEMPLATES, PROMPTS = _rows(TOOL), _rows(RESOURCE), _rows(TEMPLATE), _rows(PROMPT)
ROWS: Mapping[Family, Rows[Any]] = {
    Family.TOOL: TOOLS,
    Family.RESOURCE: RESOURCES,
    Family.TEMPLATE: TEMPLATES,
    Family.PROMPT: PROMPTS,
}
