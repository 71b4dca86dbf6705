"""Connector of other MCP servers: streamable HTTP of both eras and HTTP+SSE, over the guarded connection pool."""
