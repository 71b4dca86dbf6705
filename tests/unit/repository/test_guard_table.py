"""The table of guards, compared with the markers in the code and with the page."""

import ast
import builtins
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests import prose
from tests.guard_table import GUARDS, Guard
from tests.guards import judge, remove
from tests.mutations import parse, places
from tests.site.guards_part import PAGE, threats

ROOT = Path(__file__).parents[3]
AVOIDED = re.compile(
    r"\b(whoever|nobody|somebody|told|said|anew|wish(?:es|ed)?|mend(?:s|ed)?|stands?)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Module:
    """A module's text, its outermost statements, and the words in it."""

    text: str
    statements: Sequence[ast.stmt]
    words: set[str]

    def changed(self, after: str) -> tuple[ast.AST, ast.AST]:
        """The outermost statements, or those of a class, that differ in another text, before and after the change."""
        old, new = self.text.splitlines(keepends=True), after.splitlines(keepends=True)
        line = next(number for number, (one, other) in enumerate(zip(old, new, strict=False), 1) if one != other)
        statement = _at(line, self.statements)
        behind = len(old) - (statement.end_lineno or 0)
        text = textwrap.dedent("".join(new[_first_line(statement) - 1 : len(new) - behind]))
        return ast.Module([statement], []), ast.parse(text)


def _at(line: int, statements: Sequence[ast.stmt]) -> ast.stmt:
    statement = next(found for found in statements if line <= (found.end_lineno or 0))
    if isinstance(statement, ast.ClassDef) and line >= _first_line(statement.body[0]):
        return _at(line, statement.body)
    return statement


def _first_line(statement: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(each.lineno for each in decorators)])


@cache
def _files() -> dict[str, list[str]]:
    """The files that mark each guard."""
    return places(ROOT)


@cache
def _module(file: str) -> Module:
    text = (ROOT / file).read_text()
    return Module(text, parse(text).body, {*re.findall(r"\w+", text)})


def _unbound(tree: ast.AST) -> set[str]:
    """Names that a part of a module reads and does not import, define or assign."""
    names, found = set[str](), set[str]()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                names.add(name)
            case ast.Name(id=name):
                found.add(name)
            case ast.alias(name=name, asname=alias):
                found.add(alias or name.partition(".")[0])
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.arg(arg=name) | ast.ExceptHandler(name=str(name)):
                found.add(name)
            case _:
                pass
    return names - found


def test_every_marker_has_a_row_and_every_row_one_marker() -> None:
    """Ours: a guard is one place in the code, and no place is marked that the table leaves alone."""
    assert set(_files()) == {guard.name for guard in GUARDS}
    assert {name: files for name, files in _files().items() if len(files) != 1} == {}
    assert len(GUARDS) == len(_files())


def _can_be_removed(guard: Guard) -> bool:
    """True if the mutation applies to the marked statement, changes the program, and reads only names that exist."""
    module = _module(_files()[guard.name][0])
    before, after = module.changed(remove(guard, module.text))
    return ast.dump(after) != ast.dump(before) and _unbound(after) <= module.words | {*dir(builtins)}


def test_every_guard_can_be_removed() -> None:
    """Ours: each mutation leaves another program that compiles."""
    by_module = sorted(GUARDS, key=lambda guard: _files()[guard.name])

    assert [guard.name for guard in by_module if not _can_be_removed(guard)] == []


@cache
def _tests(file: str) -> frozenset[str]:
    """Names of the tests of a module."""
    return frozenset(re.findall(r"^(?:async )?def (\w+)\(", (ROOT / file).read_text(), re.MULTILINE))


def test_the_test_of_every_guard_exists() -> None:
    """Ours: a guard names a test that is there."""
    named = [guard.test.partition("::") for guard in GUARDS]

    assert [f"{file}::{name}" for file, _, name in named if name not in _tests(file)] == []


def test_the_page_names_a_threat_for_every_guard() -> None:
    """Ours: docs/security/guards.md names the threats in standard terms; `test_pages.py` compares the rows."""
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


def test_a_guard_of_engines_is_noticed_by_each_kind() -> None:
    """Ours: a kind for which a guard of the engines can be removed unnoticed is named."""
    guard = next(one for one in GUARDS if one.is_of_each_kind)
    one, other = f"FAILED {guard.test}[tool] - assert", f"PASSED {guard.test}[profile]"
    assert judge(guard, 1, one).is_noticed
    unnoticed = judge(guard, 1, f"{other}\n{one}")
    assert (unnoticed.is_noticed, unnoticed.output) == (False, "not noticed for profile")


def test_a_guard_without_its_marker_is_an_error() -> None:
    """Ours: a guard that was rewritten is not silently left in place."""
    with pytest.raises(ValueError, match=f"{GUARDS[0].name}: marked 0 times"):
        remove(GUARDS[0], "")
