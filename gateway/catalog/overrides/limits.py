"""Limits of overrides."""

MAX_PINNED_BYTES = 64 * 1024
"""JSON bytes of the pinned arguments of one tool, which are part of each of its calls."""
MAX_NAMED = 50
"""Arguments of the operation that a fault names."""
