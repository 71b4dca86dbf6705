"""Limits of the credentials of upstreams: keys, tokens and assertions."""

ASSERTION_LIFETIME_S = 60
"""Seconds for which an assertion is valid (docs/upstream-identity.md): longer than the deadline of a call."""
FRESH_KEYS_S = 600.0
"""Seconds for which a cached set is used without a request; an unknown key id causes one earlier."""
KEYS_RETRY_S = 30.0
"""Seconds between two fetches of a set, so that tokens with invented key ids cause no flood of requests."""
STALE_KEYS_S = 3600.0
"""Seconds for which a set is used when its issuer cannot be reached; a withdrawn key is trusted for as long."""
KEYS_FETCH_S = 10.0
"""Seconds for one fetch of a set or of metadata; the request that caused it waits for it."""
MAX_KEY_SET_BYTES = 256 * 1024
"""Bytes of one set or metadata document; usual sets have 2 to 5 kB."""
MAX_KEYS = 100
"""Keys of one set, because a token without a key id is checked with each of them."""
MAX_CACHED_KEYS_BYTES = 16 * 1024 * 1024
"""Bytes of all cached sets, of which one tenant has at most a quarter: usual sets have 2 to 5 kB."""
KEYS_ENTRY_BYTES = 1000
"""Bytes of a cached set besides its document, so that empty sets count, too."""
MAX_WAITING_FOR_KEYS = 64
"""Requests that wait for one set; further ones are refused instead of held for up to 10 s."""
EXPIRY_MARGIN_S = 30.0
"""Seconds before its end in which a token is no longer used: as long as the deadline of a call."""
MAX_TOKEN_BODY_BYTES = 64 * 1024
"""Bytes of a response of a token endpoint; a JWT with many claims has a few kB."""
DEFAULT_TOKEN_LIFE_S = 300.0
"""Lifetime in seconds of a token whose server declares none (RFC 6749 recommends `expires_in`)."""
MAX_TOKEN_LIFE_S = 24 * 3600.0
"""Longest time in seconds for which a token is cached, so that a server that revokes it is asked each day."""
