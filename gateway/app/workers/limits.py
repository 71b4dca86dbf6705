"""Limits of the supervisor of worker processes."""

MAX_WORKERS = 64
"""Workers of one machine: each has its own connections to PostgreSQL and Redis, which bound the number earlier."""

START_S = 120.0
"""Seconds for a worker to serve after its start; PostgreSQL or Redis may be slow to respond."""

ANSWER_S = 2.0
"""Seconds for a worker to report its metrics. A scrape uses the last report of a worker that is slower."""

EXIT_MARGIN_S = 10.0
"""Seconds beyond the drain after which a worker that has not ended is killed."""

STABLE_S = 10.0
"""Seconds after which the end of a worker is a single failure: it is replaced at once."""

FIRST_PAUSE_S = 0.5
"""Pause before a worker that ended early is started again; it doubles with each further early end."""

MAX_PAUSE_S = 15.0
"""Longest pause between two starts of one worker."""

MAX_REPORT_BYTES = 64 * 1024 * 1024
"""Bytes of one message between the supervisor and a worker: a metrics page of all tenants has less than 10 MB."""
