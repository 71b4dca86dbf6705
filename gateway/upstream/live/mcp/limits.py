"""Limits of connections to other MCP servers: messages, sessions and waits."""

CHECK_S = 2.0
"""Time for which a replica uses a session without asking for its record."""
MAX_AT_ONCE = 64
"""Limit on the requests of all callers that run at one server, for each replica."""
MAX_OF_CALLER = 16
"""Limit on the requests of one caller's session at one replica."""
MAX_STREAMS = 64
"""Limit on the GET streams of callers at one server, for each replica: a tenant has 256 connections."""
PING_S = 30.0
"""Interval of liveness pings."""
UNSOLICITED_S = 60.0
"""Time window for the limit on messages without a request."""
MAX_STREAMED = 1 << 30
"""Limit on the bytes of one stream; each event has its own limit."""
MAX_MESSAGE_BYTES = 10 * 1024 * 1024
"""Limit on the size of one message, equal to the limit on the result of a call."""
MAX_MESSAGES = 10_000
"""Limit on the messages of one response."""
LINGER_S = 20.0
"""Time for which an unused stream stays open, because calls of one client often follow each other."""
HEAD_S = 1.0
"""Maximum wait for the head of the response: some servers send it with the first message."""
MAX_FOLLOWED = 1_000
"""Resource subscriptions of one attachment (docs/federation.md), each of which a new session subscribes again."""
UNUSED_S = 60.0
"""Seconds after which a replica forgets an unused session; its record in Redis stays for the other replicas."""
MARK_AFTER_S = 0.1
"""Age in seconds at which a request is marked as running for the other replicas; shorter ones are over before a
question.
"""
STABLE_S = 30.0
"""Seconds after which a stream counts as stable: an earlier end is a failure, and further ones are this far apart."""
MAX_CLEAN_UP_S = 4.0
"""Seconds for a clean-up at a server, less than the 5 s that a task supervisor waits for its tasks."""
MAX_QUESTIONS = 16
"""Server requests during one client request (docs/federation.md), each of which a person or a model answers."""
MAX_PROGRESS_LENGTH = 1_000
"""Characters of the text of a progress message, which clients show in one line."""
MAX_WAITING = 64
"""Messages of the server that wait for one client; a further request fails, other messages are dropped."""
MAX_ABANDONED = 1_000
"""Abandoned requests without a response, whose ids are kept; beyond it, all server requests are refused."""
MAX_RESPONSE_BYTES = 2 * MAX_MESSAGE_BYTES
"""Bytes of one response (docs/federation.md): the result, and as much for the messages before it."""
MAX_ERROR_BODY_BYTES = 64 * 1024
"""Bytes of the body of an HTTP error in which a JSON-RPC error is searched."""
MAX_OVERHEAD_BYTES = 64 * 1024
"""Bytes of an event besides its message: field names, ids, comments."""
MAX_EVENT_ID_LENGTH = 4096
"""Characters of an event's id, which is sent back in a header; servers accept about 8,000 bytes of headers."""
MAX_RETRY_DIGITS = 6
"""Digits of the field `retry` in milliseconds, up to 1,000 s; longer pauses are cut to `MAX_RESUME_S` anyway."""
MAX_ENDPOINT_LENGTH = 2048
"""Characters of the URL that a server gives for messages, as of a declared URL."""
IDLE_S = 1_800.0
"""Seconds after which an unused session over HTTP+SSE ends, because it occupies a connection."""
MAX_SESSIONS = 64
"""Sessions at one server over HTTP+SSE (docs/federation.md); each is a connection, and a tenant has 256."""
MAX_VALUES = 200_000
"""JSON values of one message (docs/federation.md), which parsing makes in 50 ms."""
MAX_CONTAINERS = 50_000
"""Objects and lists among the values of one message (docs/federation.md), which parsing makes in 50 ms."""
MAX_QUOTED_LENGTH = 300
"""Characters of a server's text that an error or a log quotes."""
MAX_PAGES = 20
"""Pages of one list (docs/federation.md); a hostile server can add pages without end."""
MAX_OF_A_FAMILY = 500
"""Entries of one list (docs/federation.md), as for every kind of live source."""
MAX_DEFINITIONS_BYTES = 8 * 1024 * 1024
"""Bytes of the definitions of all families together as compact JSON (docs/federation.md), which a replica keeps in
memory.
"""
MAX_CURSOR_LENGTH = 4096
"""Characters of a cursor, which the gateway sends back; servers put at most their state into it."""
MAX_RESUMED = 100
"""Resumptions of one response; a server may end its stream after each message to save connections."""
MIN_RESUME_S = 0.2
"""Shortest pause in seconds before a resumption, whatever the server's `retry` is, so that it causes no busy loop."""
RESUME_S = 1.0
"""Pause in seconds before a resumption without `retry`."""
MAX_RESUME_S = 10.0
"""Longest pause in seconds before a resumption, so that a server cannot use up the deadline of a request with one
pause.
"""
MAX_SEARCHED_LENGTH = 2_000
"""Characters of a server's error in which the demand for a session is searched."""
MAX_ROUNDS = 10
"""Rounds of required input of one request (docs/federation.md); each may ask a person several questions."""
MAX_STATE_LENGTH = 1 << 20
"""Characters of the state that a server gives with required input, as many bytes as a message of a client may have."""
ROUND_PAUSE_S = 0.1
"""Seconds before the next round if the server asks no question, so that it causes no busy loop."""
