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
MAX_TOKEN_CACHE_BYTES = 32 * 1024 * 1024
"""Limit on all entries, of which one tenant has at most a quarter: about 6,000 tokens with 60 groups."""
MAX_CLAIMED_GROUPS = 1000
"""Groups of one token that are read. A rule names a group, and each is compared; tokens with more are treated as
incomplete.
"""
MAX_CACHED_KEYS = 1024
"""Parsed public keys of all issuers that a replica caches; an issuer publishes a few."""
MAX_CACHED_KEY_BYTES = 8192
"""JSON bytes of a published key whose parsing is cached, so that the cache has at most 8 MiB of keys."""
MIN_RSA_BITS = 2048
"""The shortest RSA key in bits (RFC 7518, section 3.3)."""
MAX_RSA_BITS = 8192
"""The longest RSA key in bits; the cost of verifying grows with the square of the length."""
MAX_RSA_EXPONENT = 2**32
"""RSA exponents are below this; verifying costs one multiplication for each bit, and 65,537 is usual."""

PREFETCH_AGE_S = REMEMBERED_S / 2
"""Age in seconds from which the lookup of another key also renews a cached result."""
MAX_REMEMBERED = 20_000
"""Cached results of lookups by key; the oldest is evicted, and its key is looked up again."""
MAX_RENEWALS = 256
"""Cached results that one lookup renews along with its own key: the size of its query."""
MAX_TOKEN_MARKS = 2000
"""Limit on cached digests of access tokens, by header and URL. The digest of a long token costs as much as all the rest
of the lookup. Headers with keys are not cached, so no key is in memory.
"""

MAX_PROOF_LENGTH = 8192
"""Characters of one proof, as many as a token's header may have bytes; a usual proof has about 700."""
MAX_PROOF_ID_LENGTH = 256
"""Characters of the id (`jti`) of a proof. The id is hashed before it is stored; RFC 9449 suggests 96 random bits."""
PROOFS_PER_S = 500.0
"""Proofs of one tenant per second; each costs the verification of a signature and an entry in Redis."""
PROOFS_PER_S_EACH = 100.0
"""Proofs with one key per second, a fifth of its tenant's, so that one client cannot use them up."""
PROOF_BURST_S = 2
"""Size of the burst: the proofs of this many seconds at the rate."""
PROOF_LIFE_S = 2 * WINDOW_S + 2 * CLOCK_SKEW_S
"""Seconds for which an id stays used: a proof of the future is accepted that long by replicas whose clocks differ."""
MAX_MODULUS_LENGTH = 683
"""Base64 characters of an RSA modulus of 4096 bits; longer ones are costly to verify."""

BATCH_INTERVAL_S = 1.0
"""Seconds between batches; the first use of a valid key from a suspect address waits up to this long."""
LOG_EVERY_S = 10.0
"""Seconds between log lines about one kind of failure: failures come by the thousand."""

INTROSPECTION_S = 5.0
"""Deadline in seconds of one introspection, which a request of a client waits for."""
INACTIVE_S = 3.0
"""Seconds for which a refused token is cached, as other callers are: a renewed right applies within five seconds."""
SECRET_S = 15.0
"""Seconds for which a client secret from an external store is cached; a rotated secret applies after this time."""
SECRET_RETRY_S = 1.0
"""Seconds until a failed lookup of a client secret is repeated, so that not each request repeats it."""
MAX_ACTIVE_BYTES = 32 * 1024 * 1024
"""Bytes of cached responses about active tokens, of which one tenant has at most a quarter."""
MAX_INACTIVE = 100_000
"""Cached refused tokens, of which one tenant has at most a quarter; each is a digest and a time."""
INTROSPECTION_ENTRY_BYTES = 300
"""Bytes of a cached response besides its text, about: keys, objects and times."""
MAX_INTROSPECTED_ISSUERS = 10_000
"""Issuers whose open lookups and client secrets are in memory; a further one evicts the oldest."""
MAX_WAITING_LOOKUPS = 64
"""Requests that wait for one issuer; with a deadline of 5 s, more would only wait to fail."""
INTROSPECTION_RETRY_S = 5.0
"""Seconds in `Retry-After` while an issuer cannot be asked, as long as one introspection may take."""
INTROSPECTION_BURST_S = 10
"""Size of the burst: the failures of this many seconds at the rate."""

MAX_LIFETIME_S = 900
"""Maximum lifetime in seconds of an issued token. It is not revoked before its end, so its end is near."""
MAX_GROUPS_LENGTH = 3000
"""Limit on the characters of all groups in a token, because the token is part of every request."""

MAX_KEY_SECRETS = 2
"""Secrets of one key: the present one, and the earlier one during a rotation. All are compared, for equal work."""

USES_PAUSE_S = 60.0
"""Seconds between stores of the collected uses. The last use is shown to the hour; each store is a transaction per
tenant.
"""
USES_CLOSE_S = 3.0
"""Seconds that storing the remaining uses may take when the replica stops, so that the database cannot delay the stop.
"""
MAX_WAITING_USES = 20_000
"""Uses that wait to be stored, one per key; while the database is unavailable, the oldest are lost."""

MAX_BUCKETS = 10_000
"""Buckets in memory; a further one evicts the oldest, whose name then has a full bucket again."""

MIN_OPERATOR_KEY_LENGTH = 32
"""Characters of an operator's key: 32 hexadecimal ones have 128 random bits, which cannot be guessed."""

BREAK_GLASS_EACH_S = 600.0
"""Seconds until the use of the setting's key from the same network is an event again: a person works for minutes."""
MAX_BREAK_GLASS = 1000
"""Networks whose use of the setting's key was noted; a further one evicts the oldest, and is noted again."""

LOOKUP_SLOT_S = 5.0
"""Seconds that a lookup waits for a slot; the client has a response by then, and retries."""
LOOKUP_RETRY_S = 1.0
"""Seconds in `Retry-After` if no slot became free; a lookup takes milliseconds, so slots are free again soon."""

TOKEN_ENTRY_BYTES = 700
"""Bytes of a cached token besides its claims, about: keys, objects and times."""
DIGEST_BYTES = 16
"""Bytes of the digest of a cached token: with 128 bits and a secret key, no two tokens have the same one."""
