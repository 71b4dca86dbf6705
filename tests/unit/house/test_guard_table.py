"""The table of guards, compared with the markers in the code and with the page."""

import ast
import builtins
import re
from functools import cache
from pathlib import Path

import pytest

from tests import prose
from tests.deploy.guards_page import PAGE, threats
from tests.guard_table import GUARDS, Guard
from tests.guards import judge, remove
from tests.mutations import places

ROOT = Path(__file__).parents[3]
FILES = places(ROOT)
AVOIDED = re.compile(
    r"\b(whoever|nobody|somebody|told|said|anew|wish(?:es|ed)?|mend(?:s|ed)?|stands?)\b", re.IGNORECASE
)


@cache
def _module(file: str) -> tuple[str, str, set[str]]:
    """A module's text, tree, and the names in it."""
    text = (ROOT / file).read_text()
    tree = ast.parse(text)
    return text, ast.dump(tree), _names(tree)


def _names(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _bound(tree: ast.AST) -> set[str]:
    """Names that a module imports, defines or assigns."""
    found = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    for node in ast.walk(tree):
        match node:
            case ast.alias(name=name, asname=alias):
                found.add(alias or name.partition(".")[0])
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.arg(arg=name) | ast.ExceptHandler(name=str(name)):
                found.add(name)
            case _:
                pass
    return found


def test_every_marker_has_a_row_and_every_row_one_marker() -> None:
    """Ours: a guard is one place in the code, and no place is marked that the table leaves alone."""
    assert set(FILES) == {guard.name for guard in GUARDS}
    assert {name: files for name, files in FILES.items() if len(files) != 1} == {}
    assert len(GUARDS) == len(FILES)


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.name)
def test_a_guard_can_be_removed(guard: Guard) -> None:
    """Ours: the mutation applies to the marked statement, changes the program, and reads only names that exist."""
    text, before, names = _module(FILES[guard.name][0])

    after = ast.parse(remove(guard, text))

    assert ast.dump(after) != before
    added = _names(after) - names - set(dir(builtins))
    assert not added or added <= _bound(after)


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.name)
def test_a_guards_test_exists(guard: Guard) -> None:
    """Ours: a guard names a test that is there."""
    file, _, name = guard.test.partition("::")

    assert re.search(rf"^(?:async )?def {name}\(", (ROOT / file).read_text(), re.MULTILINE)


def test_the_page_names_a_threat_for_every_guard() -> None:
    """Ours: docs/security/guards.md names the threats in standard terms; `test_pages.py` compares the other columns."""
    listed = threats(PAGE.read_text())

    assert set(listed) == {guard.name for guard in GUARDS}
    assert {name: text for name, text in listed.items() if not text or prose.AVOIDED.search(text)} == {}


def test_the_threat_model_names_guards_and_tests_that_exist() -> None:
    """Ours: each promise of docs/security/threat-model.md can be pointed at."""
    page = (PAGE.parent / "threat-model.md").read_text()
    rows = re.findall(r"^\| .+ \| .+ \| (.+) \| `(tests/\S+)` \|$", page, re.MULTILINE)
    named = {name for guards, _ in rows for name in re.findall(r"`([a-z0-9-]+)`", guards)}

    assert len(rows) > 40
    assert named - {guard.name for guard in GUARDS} == set()
    assert [test for _, test in rows if not (ROOT / test).exists()] == []


@pytest.mark.parametrize(
    ("code", "output", "is_noticed"),
    [
        (1, "FAILED tests/unit/test_x.py::test_y - AssertionError", True),
        (0, "1 passed", False),
        (1, "ERROR tests/unit/test_x.py::test_y - fixture", False),
        (2, "FAILED tests/unit/test_x.py::test_y", False),
        (-1, "no end within 300 seconds", False),
    ],
)
def test_only_a_failed_test_notices(code: int, output: str, is_noticed: bool) -> None:
    """Ours: neither an error of collection or set-up nor a timeout hides that a guard goes unnoticed."""
    assert judge(GUARDS[0], code, output).is_noticed is is_noticed


def test_a_guard_without_its_marker_is_an_error() -> None:
    """Ours: a guard that was rewritten is not silently left in place."""
    with pytest.raises(ValueError, match=f"{GUARDS[0].name}: marked 0 times"):
        remove(GUARDS[0], "")
