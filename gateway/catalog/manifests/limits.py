"""Limits of one application of manifests."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

import anyio

from gateway.errors import LimitExceeded

MAX_OBJECTS: Final = 500
"""Objects of one application: a new one takes 14 to 21 ms on two cores, and up to 48 ms while others use them. So the
transaction takes at most 24 s, in which no other change of the tenant can begin, and fits into `MAX_SECONDS`."""
MAX_EXPECTED: Final = 4_000
"""Expected versions of one application: of its objects, and of those that they refer to."""
MAX_BODY_BYTES: Final = 4 * 1024 * 1024
"""Bytes of the body: 8 KiB for each of the objects; its parsing takes 50 ms of a thread."""
BYTES_PER_TOKEN: Final = 50
"""Bytes of the body that count as one more request for the rate limit: the least that an object takes."""
MAX_DRIFT_EVENTS: Final = 20
"""Events about drift of one application; the trail and the metric have all changes."""
MAX_SECONDS: Final = 30.0
"""Seconds of the transaction without its commit, in which other changes of the tenant wait."""
MAX_PREPARE_SECONDS: Final = 60.0
"""Seconds of all checks before the transaction, which wait for upstreams."""
PREPARED_AT_ONCE: Final = 8
"""Objects whose checks before the transaction run at once, so that an application uses few connections."""
MAX_DOCUMENT_BYTES: Final = 64 * 1024 * 1024
"""Bytes of the documents of one application, which are in memory with their tools until the commit."""
DEFAULT_MAX_DELETIONS: Final = 20
"""Objects that pruning removes at most if the request has no other limit: few manifests lose more at once."""
MAX_CHANGES_SHOWN: Final = 100
"""Changed values that the result shows of one object; with more, it shows the changed members as a whole."""
MAX_VALUE_BYTES: Final = 4096
"""Bytes of JSON of one changed value, before and after together: what a person reads of it."""
MAX_SHOWN_BYTES: Final = 1024 * 1024
"""Bytes of JSON of all changed values of a result: 136 bytes can prune objects of 80 MB."""
MAX_SHOWN_CHANGES: Final = 2_000
"""Changed values of a result; each takes about 100 bytes and 10 µs."""
MAX_FAULTS: Final = 20
"""Faults of a refusal, as for other requests."""


@contextmanager
def within(seconds: float, part: str) -> Generator[None]:
    """End the block after some seconds.

    Raises:
        LimitExceeded: the block took longer.
    """
    try:
        with anyio.fail_after(seconds):  # guard: apply-bounded-in-time
            yield
    except TimeoutError:
        message = f"the {part} took more than {seconds:g} s; apply fewer objects at once, or retry later"
        raise LimitExceeded(message, limit="apply_seconds") from None
