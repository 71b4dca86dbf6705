"""The command line: a client of our own REST and MCP, and the way to start a gateway."""
