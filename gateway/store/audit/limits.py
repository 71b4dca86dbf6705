"""Limits of the writers of audit trails: groups, queues and waits."""

MAX_HEAD_FILE_BYTES = 256 * 1024 * 1024
"""Bytes that are read from the end of the file; earlier heads are not compared."""
MAX_OF_A_TENANT = 100
"""Maximum number of different refusals per tenant and minute; others are counted under the principal `others`."""
MAX_OF_A_PRINCIPAL = 20
"""Of these, the most of one principal, so that its flood leaves room for the refusals of others."""
MAX_PENDING_OF_A_TENANT = 20
"""Entries of one tenant that wait for PostgreSQL; further refusals are counted."""
MAX_PENDING = 1000
"""Entries of all tenants that wait, about 1 MB."""
COMMIT_S = 10.0
"""Deadline of a group without entries that can be spooled."""
BACK_OFF_S = 1.0
"""Back-off after the database refused a connection, if there is a spool."""
MAX_CHAINS = 10_000
"""Chains whose ends one connection remembers, one for each tenant; beyond it the ends are read again."""
MAX_COUNTED = 100_000
"""Newest entries in which the calls of tools are counted, so that the query is fast for tenants with many calls."""
MAX_HEADS = 10_000
"""Heads of one tenant that a comparison reads, the newest ones: a week of one head per minute."""
SIGN_PAUSE_S = 60.0
"""Seconds between two signatures: what a thief of the database can change unnoticed is as old at most."""
CLOSE_S = 3.0
"""Seconds for the last signatures, or the last refusals, at the end of a replica."""
MAX_KNOWN_HEADS = 10_000
"""Tenants whose last head a replica remembers; the head of a forgotten one is read again."""
HEADS_S = 5.0
"""Seconds for the reading or delivery of heads by a background task."""
PROMPT_HEADS_S = 1.0
"""Seconds for the reading of heads by a request, which then answers without them."""
MAX_QUEUED_HEADS = 10_000
"""Tenants whose newest head waits for its delivery to one store."""
TALLY_S = 60.0
"""Seconds between two entries of one counted refusal, so that a flood makes one entry per minute."""
MAX_COUNTED_TENANTS = 10_000
"""Tenants whose refusals a replica counts between two writes; those of others are not counted."""
MAX_WRITES = 100
"""Counted refusals that are written at once, so that they share a commit and leave room in the queue."""
SETTLE_S = 1.0
"""Seconds that a reader of the trail waits for the last refusals of its tenant."""
DRAIN_PAUSE_S = 1.0
"""Seconds between two looks at the spool."""
MAX_DRAIN_S = 20.0
"""Seconds for one round of the drain; a database that hangs ends it, and the entries stay in the spool."""
MAX_GROUP = 256
"""Entries of one commit, so that a commit takes milliseconds."""
MAX_QUEUED = 16_384
"""Entries of all tenants that wait for a commit: 64 full groups."""
LINGER_S = 0.001
"""Seconds for which a group waits for more entries if the previous group had several; uvloop's shortest timer."""
WRITER_CLOSE_S = 5.0
"""Seconds for the last entries at the end of a replica."""
SPOOL_S = 2.0
"""Seconds for a group that can be spooled instead, as for every caller with a fallback."""
FAILURE_S = 20.0
"""Seconds for which a failure counts: longer than the pause between two probes of a balancer. An unready replica gets
no calls, so that no later entry shows that the failure is over.
"""
