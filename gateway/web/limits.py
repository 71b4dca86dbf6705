"""Limits of the edge and of endpoints: remembered headers, probes, log lines and webhooks."""

MAX_LOGGED_PATH_LENGTH = 200
"""Characters of the path of a refused request in the log; the client chooses it."""

CHECK_S = 2.0
"""Seconds for a check of one part; orchestrators wait 1 to 5 s for a probe by default or by usual configuration."""
CACHE_S = 0.25
"""Seconds for which the state is cached: anyone may request it, and each check costs a query and a command."""

MAX_ACCEPTED_HOSTS = 512
"""Accepted spellings of headers that are cached. Wildcards accept many; others are matched each time."""

MAX_HOPS = 16
"""Hops of `X-Forwarded-For` that are read from the end; a client may send a header of any length."""

REFUSAL_LINES_PER_S = 5.0
"""Lines per second about refused credentials; a flood of refusals would fill the disk and hide other lines."""

MAX_WEBHOOK_BYTES = 64 * 1024
"""Bytes of one notification: 100 URIs of about 600 characters. The body is read before its signature is known."""
MAX_CHANGES = 100
"""Changed resources of one notification; each is published to all replicas."""
MAX_CHANGED_URI_LENGTH = 2048
"""Characters of a URI or name in a notification, as in a definition."""
WEBHOOK_BODY_S = 10.0
"""Seconds for the body of a notification to arrive, so that a slow client does not hold its connection."""
MAX_VERIFICATION_QUEUE = 256
"""Notifications that wait for a slot to be verified; each holds its body, together at most 16 MiB."""
