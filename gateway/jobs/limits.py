"""Limits of jobs: deliveries, polls and waits."""

TIME_SLICE_S = 20.0
"""Time after which a delivery ends and releases its slot in the scheduler."""
POLL_LEASE_S = 60.0
"""Seconds of a replica's lease on its poll; the deadlines of the upstream request are shorter."""
MAX_BACKOFF_S = 3600.0
"""Maximum back-off after failed polls, in seconds, unless the watch's own interval is longer."""
ATTEMPT_S = 15.0
"""Seconds for one attempt, from the name lookup to the end of the response."""
SINK_SEND_S = 20.0
"""Seconds for one batch, shorter than the lease of 60 s, so that no other replica sends the batch meanwhile."""
SINK_BATCH_BYTES = 1024 * 1024
"""Bytes of one batch for a sink: usual receivers of HTTP accept 1 MiB."""
SINK_PAUSE_S = 2.0
"""Pause in seconds between batches, and after the first failure; it doubles with each further one."""
MAX_SINK_PAUSE_S = 300.0
"""Longest pause in seconds: a sink that works again receives its entries within five minutes."""
MAX_DOUBLINGS = 10
"""Doublings of a pause, so that many failures do not overflow; the longest pause is reached earlier."""
MAX_RECEIVER_BYTES = 64 * 1024
"""Bytes that are read of a receiver's response, of which only the status counts."""
MAX_FAULT_LENGTH = 300
"""Characters of a fault that is stored and shown; it may quote the other side."""
SINK_CLOSE_S = 5.0
"""Seconds for the end of a syslog connection, in which a reset of the receiver is noticed."""
SCHEDULER_PAUSE_S = 1.0
"""Seconds between two queries for due jobs: the delay of a job at most."""
AT_ONCE = 32
"""Jobs that run at once on a replica. Chosen, not measured: they wait for upstreams most of the time."""
AT_ONCE_EACH = 4
"""Jobs of one tenant that run at once on a replica: an eighth of all."""
MAX_DUE_JOBS = 1000
"""Due jobs of one query. Chosen, not measured: more than the replicas run at once."""
MAX_DUE_JOBS_EACH = 2 * AT_ONCE_EACH
"""Due jobs of each tenant and query: twice its limit of running jobs, because a slow job becomes due again while it
runs, and must not hide later jobs.
"""
MAX_NOTIFIED = 10_000
"""URIs of one pass that are kept in memory to notify each once; above it some are notified twice."""
MAX_WATCHED_BYTES = 10 * 1024 * 1024
"""Bytes of the body of a watched URL, as of the result of a call."""
DRAIN_S = 2.0
"""Seconds for the reading of a response whose status is known; an unread one would reset the receiver's connection."""
