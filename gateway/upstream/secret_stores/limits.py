"""Limits of external secret stores: secrets, responses and waits."""

MAX_FILE_BYTES = 64 * 1024
"""Bytes of a secret in a file (docs/secret-references.md); private keys and service accounts have a few KiB."""
READ_S = 5.0
"""Seconds for one read of a secret (docs/secret-references.md), with the wait for a slot; a call waits for it."""
MAX_VAULT_BYTES = 256 * 1024
"""Bytes of a response of a Vault server: a secret of 64 KiB as escaped JSON, and its metadata."""
DEFAULT_LEASE_S = 60.0
"""Seconds for which a token of the server is used if its lease has no duration."""
MAX_LEASE_S = 86_400.0
"""Longest time in seconds for which a token of the server is used, so that a new login follows each day."""
