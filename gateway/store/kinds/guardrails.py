"""Rows of guardrails: all that admins set is one JSON object."""

from gateway.kinds.selections import GUARDRAIL
from gateway.store.calls.tables import guardrails
from gateway.store.kinds.row_mapper import RowMapper
from gateway.store.kinds.rows import Rows

GUARDRAILS = Rows(
    GUARDRAIL,
    RowMapper(
        GUARDRAIL.of,
        guardrails,
        packed="rule",
        copies={
            "position": lambda one: one.position,
            "credential": lambda one: None if one.hook is None else one.hook.credential,
        },
    ),
)
