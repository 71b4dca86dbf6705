"""Limits of admin requests: rates, open requests, bodies, headers and reports."""

DEFAULT_RATE = 50.0
"""Requests per second of one key, unless the operator configures another rate."""
BURST_S = 4
"""The burst, in seconds of the rate."""
BYTES_PER_TOKEN = 4096
"""Bytes of a body that count as one more request: validating a tool takes about 0.3 ms per KiB."""
MAX_COST_S = 2.0
"""The highest cost of one request, in seconds of the rate: a burst permits it, so that no body can never be sent."""
TENANT_FACTOR = 2
"""Rate of a tenant, as a multiple of the rate of a key."""
ADDRESS_FACTOR = 10
"""Rate of an address, as a multiple of the rate of a key."""
MAX_OPEN_PER_KEY = 64
"""Open requests of one key, which leave room for another key of its tenant."""
MAX_OPEN_PER_TENANT = 96
"""Open requests of one tenant, which leave room for others behind the same address."""
MAX_OPEN_PER_ADDRESS = 256
"""Open requests of one client address, behind which several tenants may be."""
OPEN_RETRY_S = 1.0
"""Seconds in `Retry-After` of a request over a limit of open requests: most end within one."""

BODY_TIMEOUT_S = 60.0
"""Seconds for a body to arrive; a document has up to 32 MiB, which needs 550 KiB per second."""

MAX_TAG_LIST_LENGTH = 4096
"""Characters of `If-Match`; a client sends one tag of about 30."""

RELEASE_TIMEOUT_S = 2.0
"""Seconds for the release of a key after a failed request; its lease expires without it."""

MAX_REST_BYTES = 1024 * 1024
"""Maximum size of a body without its document or archive, in bytes. Smaller bodies are decoded as a whole."""
SEARCHED_BYTES = 64
"""Bytes of a member with which its place in the body is found; `bytes.find` preprocesses all that it searches for."""
