"""Limits of primitives in Python: the lookup of hidden names, and the connection of a provider."""

LOOKUP_S = 3.0
"""Seconds for the lookup, long enough for a loaded machine. A call on the event loop blocks the loop for this long."""
LOOKUP_RETRY_S = 10.0
"""Seconds before a failed lookup is repeated; it only causes a warning in the log."""

FIRST_PAUSE_S = 0.5
"""Seconds before the first reconnect; the pause doubles with each failure."""
MAX_BACKOFF_S = 30.0
"""The longest pause in seconds, after which the calls of a gateway that is back reach the provider."""
OPEN_S = 15.0
"""Seconds for the WebSocket handshake, in which the gateway looks up the key."""
MAX_RECEIVED_BYTES = 16 * 1024 * 1024
"""Bytes of one message of the gateway; the arguments of a call have at most 1 MiB, so a later gateway may send more."""
