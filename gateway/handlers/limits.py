"""Limits of handlers: steps, completions, parsing, and stored results."""

MAX_MEMO_ENTRY_BYTES = 8 * 1024
"""JSON bytes of one completed action; a larger one is carried out again when the call restarts."""
MAX_MEMO_BYTES = 32 * 1024
"""JSON bytes of all completed actions, half of the state that a client carries between rounds."""

COMPLETION_S = 10.0
"""Seconds for a completion; a user waits for it while typing."""
MAX_COMPLETIONS = 100
"""Values of one response, the most that MCP permits."""

MAX_INLINE_DECLARATION_BYTES = 16 * 1024
"""Bytes of a declaration that is parsed on the event loop; 1 MiB of placeholders takes 2.6 s."""
MAX_INVALID_REASON_LENGTH = 300
"""Characters of the reason why a stored declaration is not valid; it may quote the declaration."""

MAX_SUMMARY_LENGTH = 500
"""Characters of the arguments in the question that a user confirms."""

MAX_SHALLOW_LEVELS = 16
"""Levels of a pointer whose following costs about as much as one reading; each deeper level reads its container again.
"""
MAX_WHOLE_JSON_BYTES = 10 * 1024 * 1024 - 64 * 1024
"""Limit on the JSON of a whole result; the rest of the result limit is for the other members of the content."""
MAX_WHOLE_BYTES = 7 * 1024 * 1024
"""Limit on the bytes of a result that a resource returns complete; with JSON escapes, a larger one may be too large."""

LIST_S = 60.0
"""Seconds for all steps of one call, the usual timeout of MCP clients."""
MAX_STEP_RESULTS_BYTES = 4 * 1024 * 1024
"""Bytes of the results that the steps of one call keep in memory for later steps."""
