"""Limits of the listeners: connections, slow clients and waits."""

HEADER_S = 10.0
"""Seconds for the head of a request to arrive; a slow client would hold its connection without a caller that is
limited.
"""
STALL_S = 20.0
"""Seconds in which a peer must read a minimum of what is written to it; else its connection is aborted."""
MAX_CONNECTIONS = 12_000
"""Open connections of one replica; each uses memory and an open file, and further ones receive 503."""
PROBE_S = 30
"""Seconds of silence after which the kernel probes whether a peer still exists."""
CONNECTION_RETRY_S = 5
"""Seconds in `Retry-After` of a connection over the limit; another replica accepts it at once."""

LINGER_IDLE_S = 2.0
"""Seconds without a byte after which a connection with an unread body is closed."""
LINGER_S = 15.0
"""Seconds after which it is closed in any case, so that a client that sends for ever does not hold it."""

LISTENER_CLOSE_S = 3.0
"""Seconds that requests have to end after they were cancelled at the stop; orchestrators kill the process later."""

MAX_OPEN_FILES = 65_536
"""More than twice the connections that one replica accepts: a call can also use a connection to its upstream."""

STALL_BYTES = 16 * 1024
"""Minimum number of bytes that a peer must read within the time limit."""

FRAMES_PER_S = 100.0
"""Frames per second of one connection, as many as messages; each is parsed on the event loop that all tenants share."""
DRAIN_S = 5.0
"""Seconds that the application has to close the connection itself, after its running calls, which have 4 s."""
