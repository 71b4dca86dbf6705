"""What it costs to check a pattern: linear time always, memory as far as a tool may take it.

Patterns that need backtracking, or more memory than one is given, are neither listed nor checked.
"""

import jsonschema_rs

_LONGEST = 512
_SIZES = (16 * 1024, 128 * 1024, 1024 * 1024)


class Patterns:
    """The patterns of one document; each is tried once."""

    def __init__(self) -> None:
        self._costs: dict[str, int | None] = {}

    def cost(self, pattern: str) -> int | None:
        """How many bytes the compiled pattern takes, at most; None when it is not to be used."""
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
