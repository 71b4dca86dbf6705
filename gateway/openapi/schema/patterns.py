"""The cost of a pattern; patterns are matched in linear time and bounded memory.

A pattern that needs backtracking, compiles to more than 1 MiB or has more than 512 characters must not be used.
"""

import jsonschema_rs

from gateway.openapi.schema.limits import MAX_PATTERN_LENGTH

_SIZES = (16 * 1024, 128 * 1024, 1024 * 1024)


class Patterns:
    """The patterns of one document; each is compiled once."""

    def __init__(self) -> None:
        self._costs: dict[str, int | None] = {}

    def cost(self, pattern: str) -> int | None:
        """Return an upper bound on the bytes of the compiled pattern; None if the pattern must not be used."""
        if pattern not in self._costs:
            fitting = (size for size in _SIZES if _compiles(pattern, size))
            self._costs[pattern] = next(fitting, None) if len(pattern) <= MAX_PATTERN_LENGTH else None
        return self._costs[pattern]


def _compiles(pattern: str, size: int) -> bool:
    options = jsonschema_rs.RegexOptions(size_limit=size)
    try:
        jsonschema_rs.Draft202012Validator({"pattern": pattern}, offline=True, pattern_options=options)
    except ValueError:
        return False
    return True
