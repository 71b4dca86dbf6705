"""Limits of one import: its definitions, its report, and the messages of its worker process."""

from gateway.openapi.document.limits import MAX_NODES

MAX_LIST_BYTES = 64 * 1024**2
"""Bytes of one document's tool definitions, because the gateway keeps all of them; further operations are skipped."""
MAX_REASONS = 20
"""Reasons in the report of one operation; more are counted. A broken shared schema gives a reason at each use."""
MAX_WARNINGS = 500
"""Distinct warnings, and as many notes, of one compilation; more are counted. A report stays readable and below 1 MB.
"""
MAX_BODY_VALUES = 2 * MAX_NODES
"""Values in an object; no acceptable document has more. Parsing ten million empty objects took 6 s and 1 GB."""
MAX_MESSAGE_LENGTH = 64 * 1024 * 1024
"""Bytes of one message of a worker, as many as one document's definitions; a longer one is a protocol error."""
MESSAGE_BATCH_BYTES = 128 * 1024
"""Bytes after which a worker ends a message, so that decoding one takes little time of the parent's event loop."""
