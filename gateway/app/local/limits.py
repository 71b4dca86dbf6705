"""Limits of a local server."""

MAX_DOCUMENT_BYTES = 32 * 1024 * 1024
"""Bytes of a fetched document, as many as an import accepts."""

CURSOR_KEY_BYTES = 32
"""Bytes of the random key that signs cursors; no other process reads them."""
