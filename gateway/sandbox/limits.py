"""Limits of child processes."""

CHUNK_BYTES = 256 * 1024
"""Bytes that are written to a child at once: a large value is not copied as a whole."""

MAX_REQUESTS = 500
"""Requests after which a process is replaced, so that no growth of its memory lasts."""
MAX_RESPONSE_BYTES = 64 * 2**20
"""Bytes of one response: a child that handled a hostile value must not fill the memory of the replica."""
