"""Limits of listed tools: names, schemas and findings."""

MAX_ARGUMENT_NAME_LENGTH = 64
"""Characters of a listed argument's name, the most that APIs of models accept (`client_limits.py`)."""

MAX_NAMED = 5
"""Tools that one finding names; it states the number of all."""

MAX_NAME_LENGTH = 64
"""Characters of a listed tool's name, the most that APIs of models accept (`client_limits.py`)."""

MAX_BRANCHES = 8
"""Alternatives of a merged property. A model needs few; with more, the property accepts any value."""
MAX_DEPTH = 8
"""Levels of alternatives of a root that are read; the reader is recursive."""
MAX_VISITS = 500
"""Alternatives of a root that are read: references may lead to each of them many times."""
