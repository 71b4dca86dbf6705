"""Limits of the server on standard streams."""

MAX_OPEN = 64
"""Maximum number of concurrent requests of one client."""
MAX_ECHOED_ID_LENGTH = 60
"""Characters of a request id that an error repeats, so that the message stays on one line."""
MAX_ID_NUMBER = 2**63
"""Integers as ids are below this in their absolute value: 64 bits, as other servers and clients keep them."""

GAP_S = 0.02
"""Seconds between progress and response. Enough for an idle client to read the notification; a busy client may still
read both lines at once.
"""

DRAIN_S = 10.0
"""Seconds that requests have to finish after the end of standard input."""
STATE_KEY_BYTES = 32
"""Bytes of the random key that seals states of calls, as the SDK requires; no other process opens them."""
