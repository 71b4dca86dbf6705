"""A moment for things that need one."""

from datetime import UTC, datetime

NOW = datetime(2026, 1, 1, tzinfo=UTC)
