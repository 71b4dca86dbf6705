"""The cost of checking a pattern: always linear time, and bounded memory.

A pattern that needs backtracking, more than 1 MiB or more than 512 characters is neither listed nor checked.
"""

import jsonschema_rs

_LONGEST = 512
_SIZES = (16 * 1024, 128 * 1024, 1024 * 1024)


class Patterns:
    """The patterns of one document; each is compiled once."""

    def __init__(self) -> None:
        self._costs: dict[str, int | None] = {}

    def cost(self, pattern: str) -> int | None:
        """Return an upper bound on the bytes of the compiled pattern; None if it must not be used."""
        if pattern not in self._costs:
            fitting = (size for size in _SIZES if _compiles(pattern, size))
            self._costs[pattern] = next(fitting, None) if len(pattern) <= _LONGEST else None
        return self._costs[pattern]


def _compiles(pattern: str, size: int) -> bool:
    options = jsonschema_rs.RegexOptions(size_limit=size)
    try:
        jsonschema_rs.Draft202012Validator({"pattern": pattern}, offline=True, pattern_options=options)
    except ValueError:
        return False
    return True
