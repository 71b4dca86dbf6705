"""Limits of the authorization server and of accounts: lifetimes, caches, texts and waits."""

ACCOUNT_CACHE_S = 5.0
"""Seconds for which a replica caches a token; a disconnected account is detected after this time."""
EXPIRY_MARGIN_S = 30.0
"""Seconds before its end at which a provider's token is renewed: clocks differ, and a call takes time."""
REFRESH_S = 30.0
"""Deadline in seconds of a refresh at the provider. The waits of other requests, 120 polls of 0.25 s, are as long."""
REFRESH_POLL_S = 0.25
"""Seconds between looks at an account that another request refreshes; also the first pause before a repeated store."""
MAX_REFRESH_POLLS = 120
"""Looks at an account that another request refreshes: 30 seconds, the deadline of that refresh."""
REFUSAL_WINDOW_S = 60.0
"""A second refused token within these seconds means that the account has to be connected again."""

MAX_CLIENT_NAME_LENGTH = 200
"""Characters of a client's name that are kept; pages show 80 of them."""
MAX_CLIENT_ID_LENGTH = 300
"""Characters of a client id; the id of a client with a metadata document is its URL. Chosen, not measured."""
MAX_CLIENT_DOCUMENT_BYTES = 32 * 1024
"""Bytes of a metadata document; anyone can name one in a request, and each is fetched, parsed and cached."""
DOCUMENT_FETCH_S = 5.0
"""Deadline in seconds of the fetch of a metadata document; a person waits for the page."""
DOCUMENT_FRESH_S = 600.0
"""Seconds for which a document is used without a fetch; a withdrawn redirect URI applies after this time."""
DOCUMENT_RETRY_S = 30.0
"""Seconds until a failed fetch is repeated, so that requests of clients do not become a flood at another server."""
DOCUMENT_STALE_S = 24 * 3600.0
"""Maximum age in seconds of a document while its server is unavailable: an outage of a day ends no sign-in."""
MAX_DOCUMENTS = 4096
"""Cached documents, of which one tenant has at most a quarter."""
MAX_FAILED_DOCUMENTS = 1024
"""Cached failures, of which one tenant has at most a quarter; anyone can cause one, so they have a cache of their own.
"""
MAX_FETCHES = 10_000
"""Limit on requests for different documents; the slot pools limit their fetches."""

LEASE_PAUSE_S = 0.25
"""Seconds between attempts to take the lease of a sign-in: 20 attempts wait 5 s, about one response of a provider."""

MAX_USERINFO_BYTES = 256 * 1024
"""Bytes of a provider's response about a person; a person in 1,000 groups with long names has about 64 KiB."""

REQUEST_S = 600
"""Lifetime in seconds of a validated request: the time that a person has to sign in and to agree."""
MAX_STATE_LENGTH = 1000
"""Characters of `state`, which is part of a sealed cookie of at most 4 KiB with the other parameters."""

PENDING_S = 600
"""Seconds within which a person has to sign in at the provider, as for the request that started it."""

SUBJECT_TOKEN_CACHE_S = 20.0
"""Seconds for which an opened provider token is cached; it is read and decrypted for each call otherwise."""

EARLY_S = 10
"""Seconds before the end of an access token at which clients are to refresh it. Clocks, latency and whole seconds in
tokens otherwise let a client send an expired token. The SDK for Python then starts a new sign-in instead of a refresh.
"""
