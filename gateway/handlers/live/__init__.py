"""Handlers of primitives of live sources: requests, their results, and stored credentials."""
