"""Limits of the settings of live sources."""

MAX_REWRITTEN_DEPTH = 64
"""Levels of `_meta` in which URIs of pages are rewritten; the walk is recursive, and deeper levels are dropped."""

MAX_TEXT_LENGTH = 4_096
"""Characters of an argument, a value of a variable or a header, or an address; the longest path of Linux has 4,096."""
MAX_HEADERS = 20
"""Headers of each request to an MCP server, together at most 80 KiB. Chosen, not measured."""
MAX_ARGUMENTS = 64
"""Arguments of a program. Chosen, not measured."""
MAX_VARIABLES = 64
"""Environment variables of a program. Chosen, not measured."""
MAX_TIMEOUT_S = 300
"""The highest `timeout_s` in seconds, as for other upstreams by default (`GATEWAY_UPSTREAM_TIMEOUT_MAX_S`)."""
