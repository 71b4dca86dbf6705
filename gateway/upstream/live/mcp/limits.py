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
