"""What the gateway calls itself to MCP clients."""

NAME = "gateway"
VERSION = "0.1.0"
