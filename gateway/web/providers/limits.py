"""Limits of the WebSockets of providers."""

MAX_MESSAGE_BYTES = 4 * 1024 * 1024
"""Bytes of one message of a provider, for example the result of a call."""
MESSAGES_PER_S = 100.0
"""Messages per second of one provider; each takes time on the event loop that all tenants share."""
HEARTBEAT_S = 20.0
"""Seconds between pings: proxies close connections that were idle for 30 to 60 s."""
SEND_S = 20.0
"""Seconds for one message to leave; a provider that reads nothing for so long has disappeared."""
MAX_OUTBOX_BYTES = 16 * 1024 * 1024
"""Characters that wait to be sent to one provider; above this, it reads too slowly and is disconnected."""
MAX_REASON_BYTES = 120
"""Bytes of the reason in a close frame, which has room for 123 (RFC 6455, section 5.5)."""

MAX_CONNECTIONS = 20
"""Open connections of one tenant's providers at one replica."""
HELLO_S = 10.0
"""Seconds for the first message after the handshake; a provider sends it at once."""
HANDSHAKES_PER_S = 2.0
"""Handshakes per second of one tenant; a provider that is refused and reconnects without a pause costs a lookup each
time.
"""
PROVIDER_RETRY_S = 5.0
"""Seconds in `Retry-After` of a connection over the limit; connections last long, so a slot is rarely free soon."""

RECHECK_S = 60.0
"""Seconds between checks of the keys of open connections, because keys expire and events can be lost."""
DRAIN_S = 4.0
"""Seconds that running calls have to end before an attachment ends or the replica stops."""
