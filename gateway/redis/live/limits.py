"""Limits of messages between replicas about live sources."""

MAX_OF_OWNER = 100
"""Limit on the links of one caller; sources with links share it equally."""
MAX_OWNERS = 500
"""Limit on the callers of one tenant that have links."""
MAX_OF_CALLER = 128
"""Limit on the sessions of one subject at all live sources; a tenant may have 50 of them."""
MAX_OF_TENANT = 2_000
"""Limit on the sessions of one tenant."""
