"""Limits of the catalog: audit trails, repeated requests, and announcements."""

EXPORT_POLL_S = 1.0
"""Seconds between looks for new entries while an export follows the trail."""
EXPORT_KEEP_ALIVE_S = 15.0
"""Seconds without an entry after which an empty line is sent: proxies close connections that were idle for 30 to 60 s.
"""

MAX_CHAINS = 100
"""Chains of one trail that one transaction cuts, so that it does not hold locks for long."""
MAX_COUNTED = 100_000
"""Removable entries that a preview counts; it states that there are more."""
TIME_SLICE_S = 20.0
"""Seconds that one job cuts batches before it lets the jobs of other tenants run."""

MAX_RECORDS = 1000
"""Limit on the records of one tenant. The tenant's keys share this limit; the operator's records have their own."""
MAX_RESPONSE_BYTES = 1024 * 1024
"""Bytes of one compressed response that is stored; a repeated request without it is refused."""
MAX_RESPONSES_BYTES = 16 * 1024 * 1024
"""Bytes of all stored responses of one tenant. The tenant's keys share them; the operator's responses have a limit of
the same size.
"""
RUNNING_RETRY_S = 1.0
"""Seconds in `Retry-After` while the first request with a key runs; most end within one."""

MAX_NAMED = 10
"""Deleted tenants of one slug whose ids a refusal names."""

PUBLISH_TIMEOUT_S = 2.0
"""Seconds for the event of a change; it may be lost, because replicas also compare revisions."""
