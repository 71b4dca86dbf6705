"""Effects of other libraries on the loggers of a test process."""

import logging

from mcp.server import MCPServer


def test_a_server_of_the_sdk_makes_no_client_log_its_requests() -> None:
    """`MCPServer` configures the root logger of a process that has not done so; a line of `rich` takes 1 ms."""
    MCPServer("any")

    assert not logging.getLogger("httpx").isEnabledFor(logging.INFO)
