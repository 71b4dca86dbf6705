"""Limits of child processes that speak MCP."""

MEMORY_BYTES = 4 << 30
"""Bytes of address space of each process of the child; runtimes such as Node reserve far more than they use."""
MAX_FILES = 256
"""Open files of each process of the child (docs/federation.md), so that it cannot use up those of the host."""
MAX_LOGGED_PIECES = 1_000
"""Pieces of the child's standard error that are logged; it may write without end."""
MAX_LOGGED_LENGTH = 1_000
"""Bytes that are read from standard error at a time, and characters of one log entry."""
STOP_S = 1.0
"""Seconds between the end of the child's input and its termination, as the specification of stdio demands."""
