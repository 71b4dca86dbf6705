"""Limits of the store: waiting transactions and aliases."""

MAX_QUEUED_TRANSACTIONS = 1024
"""Transactions of all tenants that wait for a connection; each waits for at most 5 s."""
MAX_ALIASES = 5
"""Aliases of one operation (docs/openapi.md); the oldest are deleted first."""
