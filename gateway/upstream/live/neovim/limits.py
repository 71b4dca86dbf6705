"""Limits of attached editors: messages, replies and waits."""

MAX_REPLY_BYTES = 4 << 20
"""Bytes of one reply (docs/neovim.md), which arrives in parts."""
MAX_ARGUMENT_BYTES = 1 << 20
"""Bytes of a call's arguments, as many as a message of a client may have."""
MAX_REPLY_PARTS = 200
"""Parts of a reply; the plugin sends parts of 48 KiB, 86 of them for the largest reply."""
MAX_RUNNING = 16
"""Requests of one attachment at once, because each may hold a reply in memory."""
MAX_SUBSCRIPTIONS = 100
"""Resources of one editor that clients follow; the plugin registers autocommands for them."""
MAX_VALUES = 200_000
"""JSON values of a reply; the plugin's own limit is half of it."""
INLINE_PARSE_BYTES = 256 * 1024
"""Bytes up to which a reply is parsed on the event loop, which takes a few milliseconds; a larger one in a thread."""
MAX_TITLE_LENGTH = 100
"""Characters of a text of the editor that lists show in one line; a notice may have five such lines."""
DETACH_S = 1.0
"""Seconds that the end of an attachment waits for the plugin to remove its autocommands."""
HANDSHAKE_S = 10.0
"""Seconds for the first requests; an editor that waits for a key answers none."""
MAX_MESSAGE_BYTES = 256 * 1024
"""Bytes of one message. The plugin sends parts of 48 KiB; broadcasts of other plugins may be larger."""
MAX_ELEMENTS = 4096
"""Declared length of a list or map, because the decoder allocates it before the elements arrive."""
READ_BYTES = 64 * 1024
"""Bytes that are read from the connection at a time."""
MAX_UNEXPECTED = 1000
"""Messages per window that belong to no pending request: broadcasts, requests, change notifications."""
UNEXPECTED_S = 1.0
"""Seconds of the window in which unexpected messages are counted."""
MAX_ERROR_LENGTH = 500
"""Characters of an editor's error that the caller sees."""
