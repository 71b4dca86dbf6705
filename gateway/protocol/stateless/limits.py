"""Limits of stateless requests: carried state and subscriptions."""

MAX_VERSION_ECHO = 64
"""Characters of an unsupported protocol version that an error repeats; a version has ten."""

MAX_STATE_BYTES = 64 * 1024
"""Bytes of the state of a call that its client carries between rounds; sealing and base64 make it a third longer."""

STATE_S = 600
"""Seconds for which the state of a call is valid: the time that a person has for the response. Nonces are stored as
long.
"""

MAX_WATCHED_TASKS = 100
"""Tasks of which one stream reports changes. Chosen, not measured."""

MAX_AGE_S = 3600.0
"""Seconds after which a subscription ends; a client that still needs it subscribes again."""
MAX_URIS = 1000
"""Resources of which one stream reports updates; each is looked up and kept in memory."""
GATHER_S = 0.02
"""Seconds for which updates of resources are collected; several of one resource become one notification."""
STOPPING_RETRY_S = 1.0
"""Seconds in `Retry-After` while the replica stops; another replica accepts the request at once."""
