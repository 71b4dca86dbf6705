"""Limits of session records, their logs and subscriptions."""

RECORD_LEASE_S = 3.0
"""Seconds for which a replica uses a record without reading it; the end of a session is delayed as long if its event is
lost.
"""
RECORD_RENEW_S = 2.0
"""Age in seconds at which a used record is read again in the background, before its lease ends."""
MAX_LEASES = 20_000
"""Records that a replica keeps in memory; further ones are read from Redis for each request."""
MAX_RECORD_BYTES = 64 * 1024
"""Bytes of a record, of which the parameters of `initialize` are the largest part."""
CLAIM_RETRY_S = 1.0
"""Seconds between two attempts to release a claim while Redis is unavailable."""
ENTRY_BYTES = 64 * 1024
"""Bytes of one entry of a log; a longer message is split, so that readers hold a few entries in memory."""
MAX_ENTRIES = 1000
"""Entries of one log, above which Redis drops the oldest: the replay of a stream is bounded."""
FINISHED_TTL_S = 600
"""Seconds for which the log of a finished stream can be replayed, as long as results can be read."""
MAX_SUBSCRIPTIONS = 1000
"""Subscriptions of one session; each update of a resource is written to the log of each subscriber."""
MAX_PARAMS_BYTES = 512
"""Bytes of a stored URI, which limits the memory for the subscriptions of a session to 512 KB."""
SUBSCRIBE_RETRY_S = 60.0
"""`Retry-After` in seconds of a refused subscription, which needs the end of another one."""
