"""The implementation name that MCP clients receive."""

NAME = "gateway"
