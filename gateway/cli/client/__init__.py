"""Clients of the gateway: admin API, MCP endpoint, and a gateway in this process."""
