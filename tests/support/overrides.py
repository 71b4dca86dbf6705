"""Overrides of imported tools."""

from datetime import UTC, datetime
from typing import Any

from gateway.domain.identifiers import OverrideId, SourceId
from gateway.domain.overrides import Override

_NOW = datetime(2026, 1, 1, tzinfo=UTC)


def make_changes(**members: Any) -> Override:
    """An override of one tool with these members."""
    known: dict[str, Any] = {
        "id": OverrideId("ovr_1"),
        "name": "get_pet",
        "source": "pets",
        "operation": "GET /pets/{id}",
        "source_id": SourceId("src_1"),
        "created_at": _NOW,
        "updated_at": _NOW,
    }
    return Override(**{**known, **members})
