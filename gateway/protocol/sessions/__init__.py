"""Handshake revisions (2024-11-05 to 2025-11-25): sessions over Streamable HTTP and HTTP+SSE."""
