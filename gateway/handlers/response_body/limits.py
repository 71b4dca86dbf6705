"""Limits of the reading of response bodies."""

MAX_VISITS = 20_000
"""Limit on the parts that are visited to find missing ones."""
MAX_NAMED = 10
"""Missing paths that a note names."""

MAX_CONTAINERS = 150_000
"""Objects and lists that are decoded in this process; with the values, decoding takes up to 50 ms."""
MAX_VALUES = 500_000
"""All values that are decoded in this process, which takes up to 50 ms."""

MAX_THREAD_BYTES = 1024 * 1024
"""Size in bytes above which a body is read in a child process: here, reading it as objects would hold the interpreter
lock for up to 190 ms for each megabyte.
"""
MAX_PROCESS_QUEUE = 256
"""Large results that wait for a child process; each holds its body."""
PROCESS_QUEUE_S = 30.0
"""Seconds that a large result waits for a child process; a client waits 60 s for its call."""
