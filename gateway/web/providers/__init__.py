"""Providers: the WebSocket endpoint for programs that offer primitives (docs/providers.md)."""
