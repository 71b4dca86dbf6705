"""Number of examples of generated tests: the same few in `make test`, others each time and many in `make fuzz`."""

import os
from typing import Final

from hypothesis import settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

FUZZ_EXAMPLES: Final = int(os.environ.get("FUZZ_EXAMPLES", "0"))
"""Number of new examples of each test; 0 repeats the usual ones."""

IS_FUZZING: Final = FUZZ_EXAMPLES > 0
_REPEATED: Final = 40


def choose_examples() -> None:
    """Have hypothesis do so, without limits on what one example takes: machines are slow when they are busy.

    It draws from the literals in all imported modules of this tree. That takes each test process 3 s, and examples then
    depend on what else the process has imported, so repeated examples go without.
    """
    if not IS_FUZZING:
        providers._get_local_constants = Constants  # pyright: ignore[reportPrivateUsage]
    settings.register_profile(
        "repeat", max_examples=_REPEATED, deadline=None, derandomize=True, database=None, print_blob=True
    )
    settings.register_profile("fuzz", deadline=None, max_examples=max(1, FUZZ_EXAMPLES), print_blob=True)
    settings.load_profile("fuzz" if IS_FUZZING else "repeat")


def at_least(count: int, *, share: int = 1) -> int:
    """So many examples for a test of its own measure, or when fuzzing one in `share` of what is asked for if more."""
    return max(count, FUZZ_EXAMPLES // share)
