"""Limits of Redis itself, of the modules beside this package, and of the leases of calls and streams."""

MAX_SPOOLED = 500_000
"""Entries of the spool, about 500 MB of Redis: hours without PostgreSQL. A full spool refuses entries."""
MAC_BYTES = 16
"""Bytes of a MAC in Redis: 128 bits cannot be guessed, and each value carries one."""
COMMAND_S = 1.0
"""Seconds for one command; scripts take milliseconds, and a call waits for several commands."""
CONNECT_S = 1.0
"""Seconds for a connection to Redis, which is in the same network."""
MAX_CONNECTIONS = 32
"""Connections of a replica; commands are short, so that few run at once. Chosen, not measured."""
FIRST_REPLACE_S = 0.5
"""Seconds between the first two replacements of a pool whose server refuses commands."""
LAST_REPLACE_S = 10.0
"""Longest pause in seconds between two replacements, doubled each time: a name that still has its old address must not
cost a connection per command, and each replacement interrupts events.
"""
DIAGNOSIS_S = 3.0
"""Seconds for each step of the diagnosis, longer than for commands of calls: a slow server is a finding."""
SUBSCRIBE_S = 2.0
"""Seconds for a subscription, and for each wait for its confirmation."""
BUS_HEARTBEAT_S = 2.0
"""Seconds between two events of a replica to itself, which prove that the bus works."""
MAX_SILENCE_S = 6.0
"""Seconds without an event after which the connection counts as lost: three heartbeats."""
CLOSE_S = 2.0
"""Seconds for the end of the bus and of a lost connection."""
ALIVE_S = 1.0
"""Seconds between two renewals of a replica's key, which lives 3.5 s: three failed renewals are survived."""
LOCK_WAIT_S = 5.0
"""Seconds that work waits for a lock, and then runs twice."""
MAX_LOGGED_PER_MINUTE = 10
"""Refused events that a replica logs per minute, so that a flood of forged events does not fill the log."""
LOG_WINDOW_S = 60.0
"""Seconds in which refused events are counted."""
CONFIRM_S = 2.0
"""Seconds that a listener waits for the confirmation of its channel, as for a subscription."""
WAKEUP_SEND_S = 2.0
"""Seconds for the sending of subscriptions, as for a subscription."""
MAX_RATES = 20_000
"""Leased token buckets of a replica, one for each key in use. An evicted key loses only a few tokens."""
RENEW_S = 2.0
"""Seconds between two renewals of a replica's slots."""
SLOTS_TTL_S = 10.0
"""Seconds after which the slots of a killed replica are free: five renewals."""
PROBE_S = 1.0
"""Seconds between two attempts to reach Redis while a replica enforces its share of a limit alone."""
SLOT_RETRY_S = 0.25
"""`Retry-After` in seconds of a refused call: calls end all the time, so that a slot is soon free."""
RENEW_DELAY_S = 0.25
"""Seconds after which a replica returns excess slots, so that the next calls can use them."""
MAX_ATTEMPTS = 8
"""Requests to Redis for one call's slot, because other calls may take the slots that it waited for."""
SMALL_LIMIT = 8
"""Concurrent calls below which a replica leases no spare slots: one of them would be an eighth of the limit."""
TOKENS_LEASE_S = 1.0
"""Seconds after which unused tokens of a lease expire, so that idle replicas hold none."""
GROW_BELOW_S = 0.33
"""Seconds below which a used lease is doubled: at the same rate of calls, a doubled lease lasts up to 0.66 s."""
MAX_LEASED_S = 0.1
"""Seconds of the rate that one lease has at most, and the share of the burst: other replicas need tokens, too."""
ZERO_RATE_RETRY_S = 60.0
"""`Retry-After` in seconds for a rate of zero, which lasts until the operator changes it."""
STREAMS_TTL_S = 15.0
"""Seconds after which the streams of a killed replica are no longer counted: three renewals."""
STREAMS_RENEW_S = 5.0
"""Seconds between two renewals of a replica's streams, which are open for minutes to hours."""
STREAM_RETRY_S = 30.0
"""`Retry-After` in seconds of a refused stream: streams are open for long, so that none is free soon."""
