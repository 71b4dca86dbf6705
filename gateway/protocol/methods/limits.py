"""Limits of the methods of MCP: notifications, waits for clients, and repeated names."""

MAX_ECHOED_URI_LENGTH = 2048
"""Characters of a URI that an error repeats, as many as a URI of a definition may have."""

MAX_ECHOED_NAME_LENGTH = 128
"""Characters of a name that an error repeats: twice those that a name may have, so that a misspelt one is complete."""

ANSWER_TIMEOUT_S = 300.0
"""Seconds that a call in a session waits for the client's responses, which a person may have to write."""

DEBOUNCE_S = 0.25
"""Seconds within which changes of a list become one notification: an import changes hundreds of tools at once."""

MAX_PER_S = 50
"""Messages per second that a call may send, and the size of its burst."""
CATCH_UP_S = 0.1
"""Seconds after which delayed progress is sent; a person sees ten updates a second as continuous."""
