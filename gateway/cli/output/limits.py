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
MIN_WIDTH = 40
"""Cells of a line into which tables are fitted; a narrower terminal breaks the lines itself."""
MAX_CELL_LENGTH = 2_000
"""Characters of a cell of a table on a terminal, about a screen of text; `--json` and pipes have all of them."""
UNLIMITED_WIDTH = 10_000_000
"""Cells of a line without a terminal: Rich needs a number, and no response has such a line."""
NOW_S = 5
"""Seconds before or after now that count as now; a clock of another machine can differ as much."""
