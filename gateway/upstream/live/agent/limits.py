"""Limits of attached agents: messages, definitions and calls."""

RESUME_S = 5.0
"""Seconds after a lost connection in which it can be resumed (docs/providers.md): a reconnect, but no wait that clients
notice.
"""
CALL_S = 60.0
"""Seconds for one call of an agent (docs/providers.md); the hello message announces it."""
MAX_QUESTIONS = 4
"""Open questions of one call to its client, each of which is shown to a person or a model."""
MAX_WAITING = 100
"""Progress and log messages of one call that wait for the client; further ones are dropped."""
MAX_NOTICE_BYTES = 64 * 1024
"""Bytes of a progress or log message (docs/providers.md); a larger one is dropped."""
MAX_FAULT_LENGTH = 1000
"""Characters of an agent's error that the caller sees."""
MAX_TITLE_LENGTH = 200
"""Characters of a source's title, which lists of sources show in one line."""
MAX_VALUES = 100_000
"""JSON values of one message (docs/providers.md), as of a client's message: parsing blocks the event loop."""
MAX_CONTAINERS = 20_000
"""Objects and lists of one message (docs/providers.md), which take most of the time and memory of parsing."""
MAX_PRIMITIVES = 500
"""Definitions of one source (docs/providers.md), as for every kind of live source."""
MAX_DEFINITIONS_BYTES = 4 * 1024 * 1024
"""Bytes of all definitions of one source (docs/providers.md), which a replica keeps in memory."""
MAX_NAME_LENGTH = 1024
"""Characters of the name of a definition before it gets the name that is listed."""
