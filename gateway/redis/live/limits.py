"""Limits of messages between replicas about live sources."""

MAX_OF_OWNER = 100
"""Limit on the links of one caller; sources with links share it equally."""
MAX_OWNERS = 500
"""Limit on the callers of one tenant that have links."""
MAX_OF_CALLER = 128
"""Limit on the sessions of one subject at all live sources; a tenant may have 50 of them."""
MAX_OF_TENANT = 2_000
"""Limit on the sessions of one tenant."""
MAX_INBOX_BYTES = 64 * 1024 * 1024
"""Bytes of the messages of one inbox in Redis; six of the largest messages of a live source fit."""
MAX_INBOX_MESSAGES = 10_000
"""Messages of one inbox, as many as one response of a live source may have."""
INBOX_POLL_S = 1.0
"""Seconds after which an inbox is read without a wake-up, because a wake-up can be lost."""
INBOX_RETRY_S = 0.2
"""Pause in seconds before the next reading while Redis is unavailable."""
LEASE_S = 4.0
"""Seconds after which a live source of a killed replica is attached by another one; leases are renewed each second."""
MAX_URI_LENGTH = 1_024
"""Characters of a linked URI, so that the links of a tenant take at most about 50 MB of Redis."""
MAX_ENDED = 1_000
"""Ended sessions of one source that wait for their end at the server; the server ends further ones itself."""
