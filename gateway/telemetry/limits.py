"""Limits of logs, metrics and traces."""

DRAIN_S = 1.0
"""Longest wait in seconds of an exit for lines that are still queued."""

MAX_CLIENT_NAME_LENGTH = 100
"""Characters of a client's name in log lines; the client chooses it."""

MAX_TENANTS = 100
"""Tenants with labels of their own; each label multiplies the time series that a monitoring system stores."""
MAX_SOURCES = 10
"""Sources of one tenant with labels of their own; others are counted together."""
MAX_OUTCOMES = 60
"""Outcomes with labels of their own; there are about as many codes of errors."""

MAX_ATTRIBUTE_LENGTH = 256
"""Characters of an attribute of a span. Chosen, not measured."""
SEND_TIMEOUT_S = 3.0
"""Seconds at the stop after which retries for an unavailable collector end."""

MAX_PIECE_LENGTH = 64 * 1024
"""Characters without a line end that are kept; longer text is passed on in pieces."""

CLOSE_TIMEOUT_S = 5.0
"""Seconds for the export of pending spans at the stop, two more than the exporter has for its retries."""
MAX_HEADER_LENGTH = 512
"""Characters of a trace header that is forwarded; `tracestate` has at most 512 (W3C Trace Context, section 3.3)."""
