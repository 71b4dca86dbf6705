"""Limits of stored results."""

RESULT_TTL_S = 600
"""Seconds for which the document of a result can be read: an agent reads it in its next steps."""
MAX_RESULTS_OF_TENANT = 64 * 1024 * 1024
"""Bytes of all stored results of one tenant: six of the largest calls."""
MAX_RESULTS_OF_OWNER = 32 * 1024 * 1024
"""Bytes of all stored results of one owner, half of those of its tenant."""
MIN_CHARGED_BYTES = 64 * 1024
"""Bytes that a smaller result is counted as, which also limits the number of results to 1,024 of a tenant."""
