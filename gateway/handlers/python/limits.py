"""Limits of handlers in Python."""

TIMEOUT_S = 60.0
"""Seconds for a function without a timeout of its own, the usual timeout of MCP clients."""

MAX_NULLS_DEPTH = 8
"""Levels that are searched for nulls; the protocol's objects have fewer (messages, content, annotations, audience)."""
