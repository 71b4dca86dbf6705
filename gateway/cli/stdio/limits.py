"""Limits of the bridge between standard streams and a server: messages, pages and waits."""

END_SESSION_S = 2.0
"""Seconds for the end of the session at the server; without it the session expires."""
FIRST_PAUSE_S = 0.5
"""Seconds before a lost stream is opened again; the pause doubles with each failure."""
MAX_PAUSE_S = 30.0
"""Longest pause in seconds before a lost stream is opened again."""
MAX_LOGGED_BYTES = 300
"""Bytes of the body of a refusal that the log shows."""
MAX_MESSAGE_BYTES = 64 * 1024 * 1024
"""Bytes of one event or message; the results of a gateway have at most 10 MiB, other servers may send more."""
MAX_PROVIDER_BYTES = 4 * 1024 * 1024
"""Bytes of one message of a provider (docs/providers.md), the gateway's own limit."""
CONNECT_S = 5.0
"""Seconds for a connection to the server."""
MESSAGE_S = 30.0
"""Seconds for a notification or response; the next line is read only afterwards."""
RESPONSE_S = 330.0
"""Seconds between two pieces of a response: a call can wait 300 s for input from its user."""
IDLE_S = 60.0
"""Seconds between two pieces of a stream that was opened with GET; the stream is then reopened."""
MAX_PAGES = 1000
"""Pages of one list; a server with a repeating cursor must not keep the bridge in a loop."""
MAX_DETAIL_LENGTH = 300
"""Characters of a server's error that the client sees."""
