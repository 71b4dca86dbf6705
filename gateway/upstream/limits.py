"""Limits of requests to upstreams: bodies, retries and waits."""

MAX_HEADS_BYTES = 4 * 1024 * 1024
"""Bytes of a response with audit heads, about 200 for each tenant: enough for 20,000 tenants."""
BODY_IDLE_S = 10.0
"""Seconds between two pieces of a body (docs/reliability.md): a slow body must not use up the whole deadline."""
SMALL_BODY_BYTES = 256 * 1024
"""Bytes up to which a body needs no room: the bodies of all calls at once have 16 MiB per tenant then."""
ROOM_UNIT_BYTES = 1024 * 1024
"""Bytes of one unit of room, which large bodies are counted in (decision 65)."""
MAX_QUEUED_BODIES = 1024
"""Bodies of all tenants that wait for room; their connections are paused, so that each costs little memory."""
BODY_WAIT_S = 30.0
"""Seconds that a body waits for room, as long as the whole deadline of a call (decision 65)."""
BODY_MARGIN_S = 1.0
"""Seconds that remain of a call's deadline after the wait, to read the body."""
MAX_BULKHEADS = 4096
"""Bulkheads of a replica, one for each tenant and origin, above which idle ones are dropped. Chosen, not measured."""
RETRY_CREDIT_PER_S = 0.2
"""Retries that are earned per second: one every five seconds (docs/reliability.md), so that rare calls have retries,
too.
"""
BUSY_RETRY_S = 1.0
"""Shortest `Retry-After` of a refusal for lack of capacity, in seconds: the unit of the header."""
DEADLINE_TICK_S = 0.25
"""Resolution of deadlines in seconds; one timer serves all calls, because a timer of each call costs more."""
MIN_RETRY_WINDOW_S = 1.0
"""Seconds that must remain of a call's deadline for a retry to have a chance."""
MAX_VALIDATOR_LENGTH = 1024
"""Characters of an `ETag` or `Last-Modified` that is stored and sent back; validators are hashes and dates."""
FETCH_RETRY_S = 30.0
"""Seconds after which a fetch that failed temporarily may be tried again. Chosen, not measured."""
MAX_EVENTS = 10_000
"""Events of one response; each becomes a part of the result, and its overhead is not in the limit of bytes."""
MAX_RETRIES = 2
"""Retries of one request, beside the retry budget of its origin: three attempts end most short outages."""
MAX_RETRY_DELAY_S = 2.0
"""Longest `Retry-After` in seconds that a call waits for; the model retries after longer ones."""
FIRST_RETRY_S = 0.1
"""Half of the range of the first random pause in seconds; the range doubles with each attempt."""
MAX_METHOD_LENGTH = 32
"""Characters of the method in the name of a span, as many as an operation's method may have."""
