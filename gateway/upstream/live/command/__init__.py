"""Connector of programs that the operator lets the gateway start, which speak MCP on their standard streams."""
