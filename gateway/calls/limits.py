"""Limits of a call: texts, values and results that are kept or shown."""

MAX_NESTED_CALLS = 8
"""The maximum depth of nested calls; the outermost call has depth 0."""
MAX_CALLS = 250
"""The maximum number of calls inside one call, at all depths together."""
MAX_RESULT_BYTES = 10 * 1024 * 1024
"""The size limit of one result, in bytes of JSON."""
ITEM_BYTES = 8
"""Bytes of JSON of a member or element beside its text, about."""
MAX_TEXT_BYTES = 256 * 1024
"""The size limit of text or JSON, in bytes; a JSON result contains the body twice, as text and as structure."""
MAX_BINARY_BYTES = 1024 * 1024
"""The size limit of binary content, in bytes; it applies only if the complete body has been stored for its caller."""
MAX_SCANNED_MEMBERS = 10_000
"""Members of an object with very many commas that are looked at; each takes about 3 µs."""
MAX_SPLIT_BYTES = 128 * 1024 * 1024
"""Limit on the bytes that are split, which each level of nesting does again."""
