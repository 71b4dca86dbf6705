"""Sources of manifests between their preparation and the transaction."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from gateway.catalog.manifests.source_target import ReadySource, SourceState
from gateway.domain.identifiers import SourceId, TenantId
from gateway.errors import Conflict

NOW = datetime(2026, 1, 1, tzinfo=UTC)
STORED = SourceState(
    tenant=TenantId("ten_1"),
    id=SourceId("src_1"),
    name="pets",
    title="Pets",
    active_version=1,
    version=1,
    created_at=NOW,
    updated_at=NOW,
    document=f"sha256:{'0' * 64}",
)


def _wanted(current: SourceState | None) -> SourceState:
    return replace(current or STORED, refresh_interval_s=600)


def test_a_source_that_moved_is_not_written() -> None:
    """Ours: a source that was changed, created or removed since its preparation is refused (CFG-6)."""
    assert ReadySource(compose=_wanted, seen=STORED)(STORED).refresh_interval_s == 600
    for seen, current in ((STORED, replace(STORED, version=2)), (None, STORED), (STORED, None)):
        with pytest.raises(Conflict, match="at the same time"):
            ReadySource(compose=_wanted, seen=seen)(current)


def test_a_source_that_is_equal_may_move() -> None:
    """Ours: a refresh by the gateway is no obstacle to a source of which nothing would be written (CFG-6)."""
    moved = replace(STORED, version=2, refresh_interval_s=600)
    assert ReadySource(compose=_wanted, seen=STORED)(moved) == moved
