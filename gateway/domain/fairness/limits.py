"""Limits and waits of slots, tasks and large work in one replica."""

MAX_INLINE_BYTES = 64 * 1024
"""Size of a value up to which work on it stays on the event loop: the worst shapes of JSON take 10 ms there. A thread
costs 0.1 ms, which is little for a larger value.
"""

SLOT_RETRY_S = 5.0
"""Seconds in `Retry-After` if all slots are in use and the queue is full, which one retry per second would not end."""

CLOSING_S = 5.0
"""Seconds that cancelled tasks have to end when their owner closes; later ones are logged and left."""
RESTART_S = 1.0
"""Seconds before a loop that failed starts again, so that a permanent failure does not fill the log."""
SOUND_S = 10.0
"""Seconds that a loop runs without a failure before its earlier failures are forgotten."""
