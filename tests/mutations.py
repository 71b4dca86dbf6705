"""Mutations of the statements that comments mark as guards: `# guard: NAME`, or several names with commas between.

A marker at the end of a statement's first line, or on a line of its own above, marks that statement. A marker at the
end of a later line, such as one element of a tuple, marks this line alone. A compound statement is marked as a whole,
but conditions and texts are looked up in its header.
"""

import ast
import io
import re
import textwrap
import tokenize
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import TypeAlias

FOLDERS = ("gateway", "migrations")
_MARK = re.compile(r"# guard: ([a-z0-9-]+(?:, [a-z0-9-]+)*)$")


@dataclass(frozen=True, slots=True)
class Place:
    """A marked statement or line; positions are those of UTF-8, as in `ast`."""

    raw: bytes
    node: ast.stmt | ast.ExceptHandler
    start: int
    end: int
    """The part in which conditions and texts are looked up: the header of a compound statement, or one line."""
    is_line: bool

    def position(self, line: int, column: int) -> int:
        """The position of a column (from 0) of a line (from 1)."""
        return _beginnings(self.raw)[line - 1] + column

    def span(self, node: ast.stmt | ast.expr | ast.ExceptHandler) -> tuple[int, int]:
        """First position of a node, and the one behind it."""
        first = self.position(node.lineno, node.col_offset)
        return first, self.position(node.end_lineno or node.lineno, node.end_col_offset or 0)

    def source(self, node: ast.expr) -> str:
        """The text of an expression."""
        first, last = self.span(node)
        return self.raw[first:last].decode()

    def replaced(self, first: int, last: int, text: str) -> str:
        """The module with another text between two positions."""
        return (self.raw[:first] + text.encode() + self.raw[last:]).decode()

    def nodes(self) -> Iterator[ast.AST]:
        """The nodes of the part, outer ones first."""
        for node in ast.walk(self.node):
            if isinstance(node, ast.comprehension):
                yield node
            elif isinstance(node, ast.expr):
                first, last = self.span(node)
                if self.start <= first and last <= self.end:
                    yield node


Mutation: TypeAlias = Callable[[Place], str]
"""Makes the text of a module without the guard. Raises ValueError where it does not apply."""


def _condition(value: str) -> Mutation:
    def mutate(place: Place) -> str:
        if isinstance(place.node, ast.If | ast.While) and not place.is_line:
            found = [place.node.test]
        else:
            ternaries = [node.test for node in place.nodes() if isinstance(node, ast.IfExp)]
            filters = [test for node in place.nodes() if isinstance(node, ast.comprehension) for test in node.ifs]
            spans = {test: place.span(test) for test in [*ternaries, *filters]}
            found = [test for test, span in spans.items() if place.start <= span[0] and span[1] <= place.end]
        if len(found) != 1:
            raise ValueError(f"{len(found)} conditions are marked")
        return place.replaced(*place.span(found[0]), value)

    return mutate


NEVER = _condition("False")
"""The condition of `if`, `elif`, `while`, of a ternary expression or of a comprehension is never met."""
ALWAYS = _condition("True")
"""The condition is always met."""


def _skip(place: Place) -> str:
    if place.is_line:
        return place.replaced(place.start, place.end, "")
    return place.replaced(*place.span(place.node), "" if isinstance(place.node, ast.ExceptHandler) else "pass")


SKIP: Mutation = _skip
"""The marked statement, line or `except` clause is left out."""


def without(*numbers: int) -> Mutation:
    """The operands of these numbers, from 1, of the outermost `and` or `or` are left out."""

    def mutate(place: Place) -> str:
        found = next((node for node in place.nodes() if isinstance(node, ast.BoolOp)), None)
        if found is None or max(numbers) > len(found.values):
            raise ValueError(f"no operands {numbers}")
        kept = [place.source(operand) for number, operand in enumerate(found.values, 1) if number not in numbers]
        word = " and " if isinstance(found.op, ast.And) else " or "
        return place.replaced(*place.span(found), f"({word.join(f'({operand})' for operand in kept)})")

    return mutate


def value(text: str) -> Mutation:
    """The statement returns, assigns or evaluates this expression instead."""

    def mutate(place: Place) -> str:
        node = place.node
        if not isinstance(node, ast.Return | ast.Assign | ast.AnnAssign | ast.Expr) or node.value is None:
            raise ValueError("the marked statement has no value")
        if place.is_line:
            raise ValueError("a line is marked, not its statement")
        return place.replaced(*place.span(node.value), f"({text})")

    return mutate


def becomes(code: str) -> Mutation:
    """The whole statement is replaced by one or more others."""

    def mutate(place: Place) -> str:
        if place.is_line:
            raise ValueError("a line is marked, not its statement")
        indented = textwrap.indent(code, " " * place.node.col_offset).lstrip(" ")
        return place.replaced(*place.span(place.node), indented)

    return mutate


def swap(old: str, new: str) -> Mutation:
    """A text that occurs once in the marked part, comments aside, is replaced by another."""

    def mutate(place: Place) -> str:
        part = _uncommented(place.raw)[place.start : place.end]
        if part.count(old.encode()) != 1:
            raise ValueError(f"{old!r} occurs {part.count(old.encode())} times")
        first = place.start + part.index(old.encode())
        return place.replaced(first, first + len(old.encode()), new)

    return mutate


def marks(text: str) -> Iterator[tuple[str, int]]:
    """Every name that the module's comments mark, with the line that it marks."""
    lines = text.split("\n")
    for line, content in enumerate(lines, 1):
        if found := _MARK.search(content):
            ahead = 0
            if content.lstrip().startswith("#"):
                ahead = next(ahead for ahead, below in enumerate(lines[line:], 1) if not _is_blank(below))
            yield from ((name, line + ahead) for name in found[1].split(", "))


def place_of(name: str, text: str) -> Place:
    """Statements that a name marks in a module.

    Raises:
        ValueError: the name marks nothing, or several places, or no statement.
    """
    lines = [line for marked, line in marks(text) if marked == name]
    if len(lines) != 1:
        raise ValueError(f"{name}: marked {len(lines)} times")
    return place_at(lines[0], text)


def place_at(line: int, text: str) -> Place:
    """The statement that begins in a line, or else the line.

    Raises:
        ValueError: no statement has this line.
    """
    raw = text.encode()
    covering = [node for node in _statements(text) if node.lineno <= line <= (node.end_lineno or node.lineno)]
    if not covering:
        raise ValueError(f"no statement in line {line}")
    node = max(covering, key=lambda found: (found.lineno, found.col_offset))
    whole = Place(raw, node, 0, 0, is_line=node.lineno != line)
    if whole.is_line:
        return Place(raw, node, whole.position(line, 0), whole.position(line + 1, 0), is_line=True)
    start, end = whole.span(node)
    body: Sequence[ast.stmt] = getattr(node, "body", ())
    return Place(raw, node, start, whole.span(body[0])[0] if body else end, is_line=False)


def places(root: Path) -> dict[str, list[str]]:
    """Every marked name of the tree, with the files that mark it."""
    found: dict[str, list[str]] = {}
    for path in sorted(path for folder in FOLDERS for path in (root / folder).rglob("*.py")):
        text = path.read_text()
        if "# guard:" in text:
            for name, _ in marks(text):
                found.setdefault(name, []).append(path.relative_to(root).as_posix())
    return found


@lru_cache(maxsize=4)
def parse(text: str) -> ast.Module:
    """The tree of a module, which nothing changes."""
    return ast.parse(text)


@lru_cache(maxsize=4)
def _statements(text: str) -> Sequence[ast.stmt | ast.ExceptHandler]:
    """All statements, found without a look at their expressions."""
    found: list[ast.stmt | ast.ExceptHandler] = []
    waiting: list[ast.AST] = [parse(text)]
    while waiting:
        node = waiting.pop()
        inner = [each for part in ("body", "orelse", "finalbody", "handlers") for each in getattr(node, part, ())]
        found += inner
        waiting += [*inner, *getattr(node, "cases", ())]
    return found


@lru_cache(maxsize=4)
def _beginnings(raw: bytes) -> tuple[int, ...]:
    """The position of each line, and of the end."""
    return (0, *accumulate(len(line) for line in raw.splitlines(keepends=True)))


def _is_blank(line: str) -> bool:
    return not line.strip() or line.lstrip().startswith("#")


def _comments(text: str) -> Iterator[tokenize.TokenInfo]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return (token for token in tokens if token.type == tokenize.COMMENT)


def _uncommented(raw: bytes) -> bytes:
    """The module with spaces for its comments; positions stay."""
    lines = raw.splitlines(keepends=True)
    for token in _comments(raw.decode()):
        number, column = token.start
        line = lines[number - 1].decode()
        blank = " " * len(token.string.encode())
        lines[number - 1] = (line[:column] + blank + line[column + len(token.string) :]).encode()
    return b"".join(lines)
