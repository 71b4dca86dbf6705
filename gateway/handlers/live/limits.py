"""Limits of calls of live sources and of their results."""

MAX_METHOD_LENGTH = 60
"""Characters of an unknown method that an error repeats; the source chooses it."""
TIMEOUT_MARGIN_S = 5.0
"""Seconds that the limit of a call exceeds that of the attachment, which ends first, with a better message."""

MAX_SHOWN_TYPE_LENGTH = 60
"""Characters of an unknown type in a notice; the source chooses it."""
MAX_NOTICE_LENGTH = 200
"""Characters of a notice about an omitted block."""
MAX_CHECKED_LENGTH = 64 * 1024
"""Length of the data of a block up to which it is checked alone; the pipeline checks larger ones with the result."""
