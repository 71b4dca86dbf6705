"""Child process that reads large results (`python -I -m gateway.calls.result_worker`); it serves one tenant.

The limits of memory and CPU time are part of each task (`gateway.sandbox.result_tasks`).
"""

import sys

from gateway.calls.result_plan import PLAN
from gateway.definitions.large_results.pages import PAGE
from gateway.handlers.response_body.projection_tasks import PROJECT, SELECT
from gateway.sandbox.result_tasks import OUT_OF_MEMORY, serve

_TASKS = {task.name: task for task in (PLAN, PAGE, PROJECT, SELECT)}


def main() -> None:
    """Serve tasks until the input ends; the exit status is `OUT_OF_MEMORY` after a `MemoryError`."""
    try:
        serve(_TASKS, sys.stdin.buffer, sys.stdout.buffer)
    except MemoryError:
        sys.exit(OUT_OF_MEMORY)


if __name__ == "__main__":
    main()
