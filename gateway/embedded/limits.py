"""Waits for the embedded servers, and limits of their files."""

TAIL_BYTES = 2000
"""Bytes of the end of a server's log that an error shows: the reason is in the last lines."""

CONNECT_TIMEOUT_S = 60.0
"""Seconds for a started server to respond; it may recover a large log after a crash, on a slow disk."""

STOP_TIMEOUT_S = 10.0
"""Seconds for a server of an earlier run to end after the signal to stop."""

MAX_SOCKET_LENGTH = 103
"""Maximum length of a socket path in bytes: the limit of macOS, which is lower than that of Linux (107)."""

CHILD_POLL_S = 0.25
"""Seconds between looks at a child process, whose end causes no notification."""
MAX_RESTARTS = 3
"""Restarts within the window after which the gateway stops: a server that ends again and again cannot be used."""
RESTART_WINDOW_S = 60.0
"""Seconds within which restarts are counted."""
