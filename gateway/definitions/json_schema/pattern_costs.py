"""Upper bound of the cost of matching a pattern, per byte of text, derived from the pattern alone.

The Rust crate `regex` builds its automaton lazily and caches a bounded number of states. A pattern with few characters
and repetitions has few states. Other patterns can make `regex` follow all states at once: about 10 ns per state and
byte.
"""

import re

from gateway.definitions.json_schema.limits import MAX_STATES

BYTE = 64
"""A cost of one unit per byte; costs are in units per 64 bytes, as in `Load`."""

_FEW_STATES = 10
_TOKEN = re.compile(
    r"\\[pPxu]\{[^{}]*\}|\\."  # an escaped character or class
    r"|\[(?>(?:\\.|\[[^\[\]]*\]|[^\]\\])*)\]?"  # an open class ends with the pattern, so that none is read twice
    r"|\((?:\?[^:)]*:?)?|\)"
    r"|\{(\d+)(?:,(\d*))?\}"  # a counted repetition
    r"|.",
    re.DOTALL,
)
_FREE = frozenset("^$|*+?")


def cost_of_pattern(pattern: str) -> int:
    """Return the cost of the pattern in units per 64 bytes of text."""
    states = count_states(pattern)
    return BYTE // 8 if states <= _FEW_STATES else BYTE * states


def count_states(pattern: str) -> int:
    """Estimate the number of states of the pattern with counted repetitions expanded; at most 2^20."""
    open_groups: list[int] = []
    states = last = 0
    for token in _TOKEN.finditer(pattern):
        text = token[0]
        if text.startswith("("):
            open_groups.append(states)
            last = 0
        elif text == ")" and open_groups:
            last = states - open_groups.pop()
        elif token[1] is not None:
            times = max(int(token[1][:7]), int((token[2] or "0")[:7]))
            added = last * max(0, times - 1)
            states, last = min(MAX_STATES, states + added), min(MAX_STATES, last + added)  # guard: work-of-patterns
        elif text not in _FREE:
            states, last = states + 1, 1
    return min(MAX_STATES, states)
