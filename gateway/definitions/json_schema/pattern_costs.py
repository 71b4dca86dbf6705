"""Upper bound of the cost of matching a pattern, per byte of text, derived from the pattern alone.

`regex` builds states as it meets them and keeps a bounded number; a pattern with few characters and repetitions has few
states. Others can make it follow all of them at once: about 10 ns for each of them and each byte.
"""

import re

BYTE = 64
"""One unit for each byte, as a load is written."""

_FEW = 10
_MOST = 2**20
_TOKEN = re.compile(
    r"\\[pPxu]\{[^}]*\}|\\."  # an escaped character or class
    r"|\[(?:\\.|\[[^\]]*\]|[^\]\\])*\]"
    r"|\((?:\?[^:)]*:?)?|\)"
    r"|\{(\d+)(?:,(\d*))?\}"  # a counted repetition
    r"|.",
    re.DOTALL,
)
_FREE = frozenset("^$|*+?")


def cost_of_pattern(pattern: str) -> int:
    """Units for 64 bytes of text."""
    states = count_states(pattern)
    return BYTE // 8 if states <= _FEW else BYTE * states


def count_states(pattern: str) -> int:
    """Number of states of the pattern, counted repetitions written out; at most a million."""
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
            states, last = min(_MOST, states + added), min(_MOST, last + added)
        elif text not in _FREE:
            states, last = states + 1, 1
    return min(_MOST, states)
