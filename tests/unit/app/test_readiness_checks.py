"""Optional parts of a replica, as a table."""

from collections.abc import Mapping

import pytest

from gateway.app.readiness_checks import still_serves


@pytest.mark.parametrize(
    ("failing", "expected"),
    [
        ({"redis": 3600.0, "redis_writes": 3600.0, "events": 3600.0}, True),
        ({"database": 59.0, "database_writes": 59.0}, True),
        ({"database": 61.0}, False),
        ({"database_writes": 3600.0, "audit_entries": 3600.0}, True),
        ({"audit": 0.0}, False),
        ({"audit_entries": 1.0, "redis_writes": 1.0}, False),
        ({"database": 1.0, "redis_writes": 1.0}, False),
        ({"database_writes": 1.0, "redis": 1.0}, False),
        ({"database_writes": 1.0, "events": 1.0, "background": 3600.0}, True),
    ],
)
def test_a_replica_serves_while_safe_calls_succeed(failing: Mapping[str, float], expected: bool) -> None:
    """Ours: the loss of a shared server takes no replica away from calls that succeed without it (SRV-4)."""
    assert still_serves(failing) is expected
