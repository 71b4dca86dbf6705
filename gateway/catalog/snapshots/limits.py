"""Limits of cached snapshots, credentials and outlines, and of reports about them."""

CREDENTIAL_FRESH_S = 15.0
"""Seconds for which a decrypted credential is used without a look at the database; an event ends it earlier."""
STALE_S = 60.0
"""Seconds since the last comparison for which a cached value is used while the database is unreachable."""
FAILED_S = 1.0
"""Seconds for which a failed read is cached, so that not each waiting call repeats it."""

MAX_FIELDS = 50
"""Paths in the argument `_fields` of one call, half of those that a definition may have."""

MAX_OUTLINES_BYTES = 64 * 1024 * 1024
"""Bytes of the outlines that one replica caches, somewhat more than the largest one."""

MAX_NAMED = 50
"""Primitives of one rule that the report names; it states the number of all."""
MAX_SCHEMAS = 200
"""Tools of one rule whose schemas are searched for its arguments; with more, the rule has no warning."""

CHECK_S = 5.0
"""Seconds for which a snapshot is used without a comparison of revisions; the maximum delay of a change whose event was
lost.
"""
