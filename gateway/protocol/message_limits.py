"""Limits of one JSON-RPC message from a client, on every transport."""

from typing import Final

MAX_BYTES: Final = 1024 * 1024
MAX_VALUES: Final = 100_000
MAX_CONTAINERS: Final = 20_000
"""Maximum number of JSON values in one message, and of objects and lists among them. Parsing such a message takes at
most 30 ms on the event loop.
"""
