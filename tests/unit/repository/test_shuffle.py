"""Another order of the tests."""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from tests.support.shuffle import shuffled

TESTS = cast(
    "Sequence[pytest.Item]",
    [
        SimpleNamespace(path=Path(folder, f"test_{module}.py"), number=number)
        for folder in ("unit", "attacks", "unit/web")
        for module in range(4)
        for number in range(5)
    ],
)


def test_a_seed_gives_one_order_in_which_modules_and_folders_stay_together() -> None:
    """Ours: all test processes of a run collect the same order, and no module starts its servers twice."""
    mixed = shuffled(TESTS, 7)

    assert sorted(mixed, key=id) == sorted(TESTS, key=id)
    assert mixed == shuffled(TESTS, 7)
    assert [*TESTS] != mixed != shuffled(TESTS, 8)
    assert len([*groupby(mixed, lambda test: test.path.parent)]) == 3
    assert len([*groupby(mixed, lambda test: test.path)]) == 12
