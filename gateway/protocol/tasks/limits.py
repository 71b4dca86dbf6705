"""Waits of the runs of tasks, in seconds."""

INLINE_S = 0.5
"""Seconds after which a running call becomes a task. Shorter calls need no row, and no poll of the client."""
TASK_RETRY_S = 2.0
"""Seconds after which a task that could not start, for lack of a slot or of the database, is tried again."""
CLOSING_S = 3.0
"""Seconds that a cancelled run has to end when the replica stops; another replica continues after its lease."""
