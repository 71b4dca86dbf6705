"""Limits of jobs: deliveries, polls and waits."""

TIME_SLICE_S = 20.0
"""Time after which a delivery ends and releases its slot in the scheduler."""
POLL_LEASE_S = 60.0
"""Seconds of a replica's lease on its poll; the deadlines of the upstream request are shorter."""
MAX_BACKOFF_S = 3600.0
"""Maximum back-off after failed polls, in seconds, unless the watch's own interval is longer."""
ATTEMPT_S = 15.0
"""Seconds for one attempt, from the name lookup to the end of the response."""
