"""Limits of the MCP endpoints: messages, rates, waits, and texts of clients that errors repeat."""

BODY_DEADLINE_S = 30.0
"""Seconds for a body to arrive: 1 MiB at 35 KiB per second. A slower client would hold an open request of its tenant.
"""
MAX_USERS = 10_000
"""Cached users of the SDK, one per key; a further one evicts the oldest, and is built again in microseconds."""

MAX_FAULTS = 3
"""Faults that one error names; parameters of a wrong shape cause one fault for each alternative of a union."""
MAX_ECHOED = 200
"""Characters of a client's method or path, or of a fault's text, that an error repeats."""

MAX_ENVELOPES = 1024
"""Validated envelopes that are cached; a client sends the same envelope with each request."""
MAX_ENVELOPE_BYTES = 4096
"""Limit on the bytes of a cached envelope. A client may send a different envelope of 1 MB with each request."""
MAX_ID_LENGTH = 1024
"""Characters of a request id on the fast path; a request with a longer one takes the usual path."""

IN_FLIGHT_RETRY_S = 1.0
"""Seconds in `Retry-After` of a request over the limit of open requests; most end within one."""

MAX_BYTES = 1024 * 1024
"""Bytes of one message. The values and containers of JSON are limited separately, because they cost more than text."""
MAX_VALUES = 100_000
"""JSON values of one message. Parsing a message with as many takes at most 30 ms on the event loop."""
MAX_CONTAINERS = 20_000
"""Objects and lists among the values of one message; each costs several times as much as a plain value."""

MIN_PER_S = 250.0
"""The minimum rate of a tenant, in requests per second: about a seventh of the capacity of one replica."""
MAX_DELAY_S = 5.0
"""The longest wait of a request in seconds, far below the timeouts of clients, of which 30 s is the shortest usual one.
"""
RATE_BURST_S = 0.25
"""Seconds of the rate that may arrive at once without a wait, so that a client may list everything when it connects."""
USUAL_LAG_S = 0.002
"""Lateness of a timer in seconds that is usual; below it, the replica has capacity."""
LAG_S = 0.004
"""The lateness of a timer, above `USUAL_LAG_S`, that halves the rate at which waiting requests start."""
MAX_SLOWDOWN = 2.5
"""Factor by which a late event loop at most slows waiting requests, so that a tenant keeps two fifths of its rate."""
MAX_SCHEDULES = 4096
"""Stored schedules; an evicted tenant gets at most one extra burst."""

MAX_ATTRIBUTE_LENGTH = 128
"""Characters of an attribute of a span that comes from the client: ids, names and header values."""
MAX_SCANNED_BODY_BYTES = 1 << 16
"""Limit on the bytes of a response part that is searched for errors; longer parts are skipped."""
