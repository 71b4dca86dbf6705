"""Limits of files, documents and archives that commands send, and of the wait for an import."""

MAX_FILE_BYTES = 8 * 1024 * 1024
"""Bytes of one file; the largest part of a manifest is a definition of 256 KiB."""
MAX_DEPTH = 64
"""Levels of one document, as for JSON that clients send."""
MAX_NODES = 500_000
"""Values of one document, with aliases counted as written out. Chosen, not measured."""
MAX_ARCHIVE_BYTES = 23 * 1024 * 1024
"""Bytes of an archive; as base64 it must fit into a request."""
MAX_WAIT_S = 300
"""Seconds that an import waits for the rate limit; the refusal has the time of the next attempt."""
