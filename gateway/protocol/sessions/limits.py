"""Limits of sessions: running requests, stored messages and waits."""

PING_S = 60.0
"""Seconds of silence after which a stream sends a ping; less if a third of the session's idle time is shorter."""
MAX_UNANSWERED = 2
"""Consecutive pings without a response that mean that the client has disappeared; one may be lost."""
CLOSE_TIMEOUT_S = 2.0
"""Seconds that the clean-up of a stream or request in Redis may take; its records expire without it."""

MAX_ID_BYTES = 16 * 1024
"""Limit on the bytes of a request id as JSON; the id is stored while the request runs, and repeated in messages about
it.
"""

SLOT_PAUSE_S = 0.1
"""Seconds between attempts to take the slot of a stream that its client has just replaced by this one."""

APPROVAL_TIMEOUT_S = 45.0
"""Seconds that a call waits for an approval by its user. Clients end a call after 60 s; the decision must arrive
before.
"""
ANSWER_POLL_S = 2.0
"""Seconds between looks for a response whose wake-up may be lost; also for the clean-up of open requests to the client.
"""

REPLAY_POLL_S = 0.5
"""Seconds between checks that the replica that runs a request is alive."""
REDIS_RETRY_S = 1.0
"""Seconds until a command is repeated while Redis is unavailable; each waiting stream repeats its own."""
CATCHING_UP_S = 5.0
"""Seconds that a stream waits for a newer catalog that exists, after which it continues with its own."""

MAX_MESSAGE_BYTES = 16 * 1024 * 1024
"""Bytes of the messages that one call may store; further ones are dropped. They take memory of Redis, which tenants
share.
"""
CLAIM_AFTER_S = 0.1
"""Seconds after which a request's id is reserved across replicas. Most requests end earlier and cost no command."""
STREAM_AFTER_S = 2.0
"""Seconds after which the response becomes a stream, if the client accepts one, so that a lost connection can be
resumed.
"""

MAX_RUNNING = 256
"""Running requests of one session at this replica; the limits of a key's open requests are usually reached earlier."""
RUNNING_RETRY_S = 1.0
"""Seconds in `Retry-After` of a request beyond them."""

MAX_STORED_LIST_BYTES = 64 * 1024
"""Bytes of a list that is sent as a stream, and thus stored, for a client that prefers it."""
