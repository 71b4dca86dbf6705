"""Limits of authentication: remembered results, bursts and waits."""

CLOCK_SKEW_S = 60
"""Permitted clock difference between issuer and gateway, in seconds."""
MAX_TOKEN_HEADER_BYTES = 8192
"""Limit in bytes; access tokens with many groups have several thousand."""
REMEMBERED_S = 3.0
"""Cache lifetime in seconds, from the start of the lookup. A revoked key must be refused within five seconds, even
after a slow lookup.
"""
WINDOW_S = 60
"""Maximum difference between the time of a proof and the gateway's clock, in seconds."""
FAILURE_BURST_S = 20
"""Size of the burst: the failures of this many seconds at the rate."""
FRESH_ISSUERS_S = 1.5
"""Cache lifetime of issuers. Callers are cached for three seconds, so a change applies within five seconds."""
STALE_S = 60.0
"""Maximum age in seconds of a cached result while the database is unavailable."""
MAX_TOKEN_CACHE_BYTES = 32 * 1024 * 1024
"""Limit on all entries, of which one tenant has at most a quarter: about 6,000 tokens with 60 groups."""
