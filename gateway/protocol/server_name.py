"""The implementation name and version that MCP clients receive."""

NAME = "gateway"
VERSION = "0.1.0"
