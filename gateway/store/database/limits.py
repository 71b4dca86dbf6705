"""Limits of connections to PostgreSQL: waits in seconds."""

PROMPT_S = 2.0
"""Seconds for PostgreSQL, for a caller that has a fallback."""
OPEN_S = 3.0
"""Seconds for which the breaker stays open before one caller probes the server."""
REPLACE_S = 1.0
"""Seconds between two generations: a server that stays read-only must not cost a connection per transaction."""
LOOP_LAG_S = 0.5
"""Delay of a timer in seconds from which on this process itself was stalled, so that the wait is repeated."""
CONNECT_S = 5.0
"""Seconds for a connection with its login; PostgreSQL starts a process for it."""
COMMAND_S = 15.0
"""Seconds for one command in the driver, because a server that hangs ignores its own `statement_timeout`."""
CLOSE_S = 0.1
"""Seconds for the orderly end of a connection, because the server may not respond; then it is aborted."""
CHECK_S = 1.0
"""Seconds for which a pooled connection is used without a check that it is alive."""
RETRY_S = 2.0
"""Seconds after which to retry a database that did not respond."""
LOCK_RETRY_S = 0.2
"""Seconds between two attempts to get the lock of migrations, which another replica holds."""
