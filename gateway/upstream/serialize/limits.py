"""Limits of written bodies."""

MAX_XML_DEPTH = 64
"""Elements within each other; the writer is recursive, and JSON of clients has at most 64 levels."""
