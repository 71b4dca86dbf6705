"""Limits of a local server."""

CURSOR_KEY_BYTES = 32
"""Bytes of the random key that signs cursors; no other process reads them."""
