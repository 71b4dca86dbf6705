"""Prose of the gateway: docstrings, comments, messages and names use standard terms (`python -m tests.prose [FOLDER]`).

A docstring, a description of a field and the help of an option begin with no indirect question. No docstring, comment
or message has a word of `AVOIDED`, no name one of `UNUSUAL`. A message is a string with a space.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDERS = ("gateway", "migrations", "examples", "benchmarks")
QUESTIONS = frozenset({"whether", "what", "how", "when", "where", "who", "whom", "whose", "which", "why"})
SHOWN = frozenset({"description", "help"})
"""Keyword arguments whose text users see in the reference pages."""
AVOIDED = re.compile(
    r"\b(whoever|somebody|nobody|anybody|he|him|his|himself|anew|mend(?:s|ed|ing)?|wish(?:es|ed)?"
    r"|call(?:s|ed|ing)? off|stands?|stood|tells?|told|hears?|heard|says?|said)\b",
    re.IGNORECASE,
)
UNUSUAL = re.compile(
    r"anew|anybody|crowds|desk|doors|hear[ds]?|lanes?|leash|mend(?:ed|ing)|nobody|outlets?|pulse|roster|said|says?|shelf"
    r"|somebody|stands|stood|tells?|tether|told|whoever|wish(?:ed|es)?"
)
"""Words of no name: metaphors, people, and verbs with a standard term (`mend` is a field of the admin API)."""
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_QUOTED = re.compile(r"`[^`]*`")


def complaints(paths: Iterable[Path]) -> Iterator[str]:
    """Every docstring, comment, message and name that breaks a rule, with its place."""
    for path in sorted(paths):
        text = path.read_text()
        shown = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
        tree = ast.parse(text)
        for line, name in _names(tree):
            for word in filter(UNUSUAL.fullmatch, (part.lower() for part in _WORDS.findall(name))):
                yield f"{shown}:{line}: avoid {word!r} in the name {name}"
        for line, docstring in _docstrings(tree):
            yield from _question(f"{shown}:{line}", docstring)
            yield from _avoided(f"{shown}:{line}", docstring)
        for line, description in _descriptions(tree):
            yield from _question(f"{shown}:{line}", description)
        for line, comment in _comments(text):
            yield from _avoided(f"{shown}:{line}", comment)
        for line, message in _messages(tree):
            yield from _avoided(f"{shown}:{line}", message)


def _docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Docstrings of modules, classes, functions, and of the constants above them."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for part in node.body:
            if (
                isinstance(part, ast.Expr)
                and isinstance(part.value, ast.Constant)
                and isinstance(part.value.value, str)
            ):
                yield part.lineno, part.value.value.strip() or "(empty)"


def _descriptions(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg in SHOWN:
            yield from _messages(node.value)


def _names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Names that the module defines: functions, classes, parameters, variables, attributes."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name
            case _:
                pass


def _comments(text: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def _messages(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Strings with a space that are no docstrings; `…` replaces the values of an f-string."""
    match node:
        case ast.Expr(value=ast.Constant()):
            return
        case ast.Constant(value=str(text), lineno=line):
            if " " in text:
                yield line, text
        case ast.JoinedStr(values=parts, lineno=line):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in parts)
            if " " in text:
                yield line, text
            for part in parts:
                if isinstance(part, ast.FormattedValue):
                    yield from _messages(part.value)
        case _:
            for child in ast.iter_child_nodes(node):
                yield from _messages(child)


def _question(place: str, text: str) -> Iterator[str]:
    if text.strip() and text.split(maxsplit=1)[0].strip(",:").lower() in QUESTIONS:
        yield f"{place}: begins with an indirect question: {text.splitlines()[0]}"


def _avoided(place: str, text: str) -> Iterator[str]:
    plain = " ".join(_QUOTED.sub("`…`", text).split())
    for found in AVOIDED.finditer(plain):
        yield f"{place}: avoid {found.group()!r}: {plain[max(0, found.start() - 30) : found.end() + 30]}"


if __name__ == "__main__":
    folders = [ROOT / name for name in sys.argv[1:]] or [ROOT / name for name in FOLDERS]
    found = list(
        complaints(path for folder in folders for path in (folder.rglob("*.py") if folder.is_dir() else [folder]))
    )
    print("\n".join(found) or "no complaints")
    sys.exit(bool(found))
