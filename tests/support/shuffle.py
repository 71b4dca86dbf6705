"""`SHUFFLE=7 make test`: the tests of each module in another order, and the modules of each folder.

Test processes take tests from each other, so the tests of a module run in another order now and then. A test that needs
another one before it, or leaves something behind, fails once in many runs therefore.
"""

from collections.abc import Sequence
from itertools import groupby
from random import Random
from typing import TypeVar

import pytest

_Part = TypeVar("_Part")


def shuffled(tests: Sequence[pytest.Item], seed: int) -> Sequence[pytest.Item]:
    """The tests in the order of a seed; those of a module stay together, and the modules of a folder."""
    chance = Random(seed)

    def mix(parts: Sequence[_Part]) -> Sequence[_Part]:
        return chance.sample(parts, len(parts))

    folders = [[*folder] for _, folder in groupby(tests, lambda test: test.path.parent)]
    modules = [[[*module] for _, module in groupby(folder, lambda test: test.path)] for folder in folders]
    return [test for folder in modules for module in mix(folder) for test in mix(module)]
