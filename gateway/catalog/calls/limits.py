"""Limits of approvals and tasks."""

MAX_KEPT = 10_000
"""The newest ended approvals of a tenant are stored for `KEPT`; this is their maximum number."""
MAX_OPEN_APPROVALS = 1000
"""Open approvals of one tenant; people decide no more, and each may have a call that waits."""
MAX_OPEN_OF_SUBJECT = 50
"""Open approvals of one subject, so that its calls cannot hide those of others."""
QUEUE_RETRY_S = 60.0
"""Pause in seconds of a task before it retries a full queue; people decide no faster."""

MAX_OPEN_EACH = 100
"""Open tasks of one subject, a tenth of those of its tenant."""
MAX_OPEN_TASKS = 1000
"""Open tasks of one tenant; each is leased and renewed by a replica while it runs."""
MAX_STORED_TASKS = 10_000
"""Stored tasks of one tenant, ended ones included."""
MAX_TASKS_BYTES = 256 * 1024 * 1024
"""Bytes of the stored tasks of one tenant: arguments and results."""
MAX_ROUNDS_BYTES = 64 * 1024
"""Bytes of the responses and stored values of one task, as many as a client carries between rounds."""
TASK_RETRY_S = 10.0
"""Seconds in `Retry-After` of a task over these limits."""
