"""Limits of the connection pool: waits in seconds."""

KEEP_ALIVE_S = 15.0
"""Seconds for which an idle connection is kept, less than most servers keep theirs. Chosen, not measured."""
SWEEP_S = 5.0
"""Seconds between two searches for idle connections that are too old; one timer serves all."""
CLOSING_S = 1.0
"""Seconds that the end of a replica waits for aborted connections to close."""
