"""Limits of converted schemas: copies, parts and values."""

MAX_BRANCHES = 1_000
"""Limit on the schemas that apply to the same value, with references followed."""
MAX_SCHEMAS = 5_000
"""Limit on the schemas of one tool."""
MAX_DEFAULT_BYTES = 4 * 1024**2
"""Limit on the bytes of one document's schemas with a default; further defaults are not checked."""
