"""Limits of stored contexts."""

MAX_CONTEXTS_BYTES = 1024 * 1024
"""Bytes of a file with contexts or keys: about a thousand contexts."""
MIN_KEYRING_PRIORITY = 1
"""The least priority of a backend of keyring that stores keys encrypted; absent and plain ones have less."""
