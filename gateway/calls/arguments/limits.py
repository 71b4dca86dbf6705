"""Limits of checked and recorded arguments."""

MAX_CHECK_QUEUE = 256
"""Waiting checks of all tenants, a quarter of them of one tenant. Each holds its value, as its request does anyway."""
CHECK_QUEUE_S = 30.0
"""Seconds that a check waits for a child process; a client waits 60 s for its call, which the check only begins."""

MAX_RECORD_BYTES = 8_000
"""Limit on the bytes of one call's recorded arguments, in JSON."""
MAX_TEXT_LENGTH = 1_000
"""Limit on the characters of one recorded string; the rest is cut off."""
MAX_SEARCHED_LENGTH = 2 * MAX_TEXT_LENGTH
"""Limit on the characters that are searched for secrets. It exceeds `MAX_TEXT_LENGTH`, so that a secret across the cut
is found.
"""
MAX_HASHED_LENGTH = 256
"""Characters of a hashed value that are searched for named credentials; the record does not contain the value itself.
"""
MAX_INTEGER = 2**63
"""Integers are recorded below this in their absolute value; an audit entry can store 64 bits, so others become text."""
