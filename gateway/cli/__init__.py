"""The command line: starts a gateway, and is a client of its admin API and MCP endpoint."""
