"""Whether the table of guards still speaks of the code that is there, and its page of the table."""

import ast
import re
from pathlib import Path

import pytest

from tests.guard_table import GUARDS, Guard
from tests.guards import PAGE, Outcome, remove, render

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.name)
def test_a_guards_text_stands_once_and_can_be_taken_out(guard: Guard) -> None:
    """Ours: what is replaced stands exactly once in its file, and what remains is Python."""
    before = (ROOT / guard.file).read_text()

    after = remove(guard, before)

    assert after != before
    ast.parse(after)


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.name)
def test_a_guards_tests_exist(guard: Guard) -> None:
    """Ours: a guard names tests that are there."""
    for address in guard.tests:
        file, _, name = address.partition("::")
        text = (ROOT / file).read_text()
        assert not name or re.search(rf"^(?:async )?def {name}\(", text, re.MULTILINE), address


def test_no_guard_is_listed_twice() -> None:
    """Ours: a name stands for one guard."""
    assert len({guard.name for guard in GUARDS}) == len(GUARDS)


def test_the_page_lists_every_guard_with_who_notices() -> None:
    """Ours: docs/security/guards.md is the table's last run (`make mutate-guards`), and in it nothing is unnoticed."""
    noticed = dict(re.findall(r"^\| `([a-z0-9-]+)` \|.*\| `(tests/\S+)` \|$", PAGE.read_text(), re.MULTILINE))

    assert set(noticed) == {guard.name for guard in GUARDS}
    for guard in GUARDS:
        assert any(noticed[guard.name].startswith(test) for test in guard.tests), guard.name


def test_the_threat_model_names_guards_and_tests_that_exist() -> None:
    """Ours: each promise of docs/security/threat-model.md can be pointed at."""
    page = (PAGE.parent / "threat-model.md").read_text()
    rows = re.findall(r"^\| .+ \| .+ \| (.+) \| `(tests/\S+)` \|$", page, re.MULTILINE)
    named = {name for guards, _ in rows for name in re.findall(r"`([a-z0-9-]+)`", guards)}

    assert len(rows) > 40
    assert named - {guard.name for guard in GUARDS} == set()
    assert [test for _, test in rows if not (ROOT / test).exists()] == []


def test_a_guard_that_nothing_notices_is_shown() -> None:
    """Ours: the page hides no failure."""
    assert "**nothing**" in render([Outcome(GUARDS[0], None)])


def test_a_text_that_is_gone_is_an_error() -> None:
    """Ours: a guard that was rewritten is not silently left in place."""
    with pytest.raises(ValueError, match="0 times"):
        remove(GUARDS[0], "")
