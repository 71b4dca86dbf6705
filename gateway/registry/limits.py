"""Limits of registries: cursors, cached views and rechecks."""

MISSED_EVENT_RECHECK_S = 8.0
"""Seconds between two comparisons with the database; the maximum delay of a change whose event was lost."""

MAC_BYTES = 12
"""Bytes of the MAC of a cursor: 96 bits, which a client cannot guess at the rate of its requests."""
MAX_CURSOR_LENGTH = 16 * 1024
"""Characters of a cursor, which contains a URI of at most 8,192 characters in base64."""

MAX_CACHED_CALLERS = 1000
"""Callers per snapshot whose matching rules are cached; others are matched again."""
MAX_RESTRICTED = 32
"""Limit per snapshot on cached lists that access rules restrict; beyond it, the list used first is evicted."""
