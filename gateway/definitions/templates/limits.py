"""Limits of templates: their text, their parsing and their rendering."""

MAX_READ_NUMBER_LENGTH = 40
"""Characters of a text that a filter reads as a number, else 0; 64 bits have 20 digits, a fraction 17 and an exponent.
"""
MAX_ROUND_DIGITS = 20
"""Decimal places of `round`; a float has 17 significant digits, so more places change nothing."""

MAX_RENDERED_TEXT_LENGTH = 256 * 1024
"""Characters of one string that a filter builds, as many as the whole output may have."""

MAX_BRACKET_DEPTH = 16
"""Levels of brackets in a path; the parser is recursive. Chosen, not measured."""
MAX_LITERAL_LENGTH = 24
"""Characters of a number in an expression; a float in full has at most 24."""

MAX_BLOCK_DEPTH = 20
"""Levels of blocks such as `if`; parser and renderer are recursive. Chosen, not measured."""

MAX_TREE_DEPTH = 32
"""Levels of a JSON tree with templates; reading and rendering are recursive."""
MAX_TREE_NODES = 10_000
"""Values of a JSON tree with templates. Each is rendered for each call. Chosen, not measured."""

MAX_TEMPLATE_LENGTH = 64 * 1024
"""Characters of one template, or of a condition. Rendering takes time in proportion, because there are no loops."""

MAX_COMPARISON_LENGTH = 100
"""Characters that CPython compares at each position of a search in repetitive text; a search is charged with as many.
"""
