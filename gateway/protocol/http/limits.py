"""Waits of responses over HTTP."""

WATCH_AFTER_S = 0.25
"""Seconds until the watcher task starts. Most requests end earlier and need none; a task costs as much as a short call.
"""

KEEP_ALIVE_S = 15.0
"""Seconds of silence after which a comment is sent: proxies close connections that were idle for 30 to 60 s."""
STOPPING_RETRY_S = 1.0
"""Seconds in `Retry-After` while the replica stops; another replica accepts the request at once."""
