"""MCP on the standard streams of a process."""
