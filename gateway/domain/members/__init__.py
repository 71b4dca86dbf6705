"""Markers, shared types and formats of the members of declared objects."""
