"""Limits of the search for patterns in texts."""

MAX_LAYERS = 3
"""Layers of escapes that are undone; each costs a pass over the text, and a model rarely reads deeper ones."""
MAX_EXPANDED = 4
"""Characters of the compatibility form of one character that are kept: one has up to 18, which would multiply a text.
"""

MAX_JOINED_PATTERN_BYTES = 4 * 2**20
"""Memory in bytes of the compiled patterns of one guardrail, joined to one; repetitions compile to many times their
text.
"""
MAX_COMPILED = 256
"""Compiled sets of patterns that are cached: a guardrail has one, and each has at most 4 MiB."""
