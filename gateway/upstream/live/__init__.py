"""Connectors of live sources, one package per kind: other MCP servers, editors, connected agents, commands."""
