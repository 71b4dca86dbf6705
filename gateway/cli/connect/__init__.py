"""`gateway connect`: the configuration of MCP clients on this machine."""
