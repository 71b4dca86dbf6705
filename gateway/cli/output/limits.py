"""Limits of the text that commands print."""

MAX_SEARCHED_TOOLS = 500
"""Tools that are searched for an example call."""
FRAME_S = 0.1
"""Seconds between two frames of the progress line."""
MAX_EXAMPLES = 3
"""Places that a line of a report names; the others are counted."""
MAX_WARNINGS = 5
"""Warnings and findings that the text of a report shows; `--json` has all of them."""
MAX_NOTES = 5
"""Notes that the text of a report shows; `--json` has all of them."""
