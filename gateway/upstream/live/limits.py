"""Limits of live sources of every kind."""

DEFAULT_TIMEOUT_S = 60.0
"""Seconds for one request to a live source that declares no `timeout_s` (docs/federation.md)."""
