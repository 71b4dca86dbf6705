"""Ceilings of modules, functions and folders, rules for names and for clean-up (`python -m tests.ceilings`)."""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import cast

MODULE_LINES = 400
FUNCTION_LINES = 50
FOLDER_ENTRIES = 25
BANNED = frozenset(
    {"manager", "service", "helper", "helpers", "util", "utils", "common", "core", "base", "data", "info", "process"}
)
_FOLDERS = ("gateway", "migrations", "examples", "benchmarks")
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def complaints(root: Path) -> Iterator[str]:
    """Every place that is over a ceiling or uses a banned name."""
    yield from _of_folders(root / "gateway", root)
    yield from _of_classes(root / "gateway", root)
    for folder in _FOLDERS:
        for path in sorted((root / folder).rglob("*.py")):
            yield from _of_module(path, path.relative_to(root))


def _of_folders(top: Path, root: Path) -> Iterator[str]:
    listed: dict[Path, set[str]] = {}
    for path in top.rglob("*.py"):
        package = path.parent if path.name == "__init__.py" else path
        if not package.name.startswith("__") and package != top:
            listed.setdefault(package.parent, set()).add(package.name)
    for folder, names in sorted(listed.items()):
        if len(names) > FOLDER_ENTRIES:
            yield f"{folder.relative_to(root)}: {len(names)} entries, the ceiling is {FOLDER_ENTRIES}"


def _of_classes(top: Path, root: Path) -> Iterator[str]:
    """Classes that two modules define: a name has one meaning."""
    defined: dict[str, list[str]] = {}
    for path in sorted(top.rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                defined.setdefault(node.name, []).append(str(path.relative_to(root)))
    for name, places in defined.items():
        if len(places) > 1:
            yield f"{name}: is defined in {' and in '.join(places)}"


def _of_module(path: Path, shown: Path) -> Iterator[str]:
    text = path.read_text()
    lines = text.count("\n")
    if lines > MODULE_LINES:
        yield f"{shown}: {lines} lines, the ceiling is {MODULE_LINES}"
    if banned := _banned(path.stem):
        yield f"{shown}: a module may not be called {banned}"
    tree = ast.parse(text)
    if ast.get_docstring(tree) is None:
        yield f"{shown}: a module opens with one sentence"
    if path.name == "__init__.py" and len(tree.body) > 1:
        yield f"{shown}: a package's __init__ is one docstring"
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from _of_definition(node, shown)
        elif isinstance(node, ast.Try):
            for block in (*(handler.body for handler in node.handlers), node.finalbody):
                yield from _of_cleanup(block, shown)


def _of_cleanup(block: list[ast.stmt], shown: Path) -> Iterator[str]:
    """Log calls in an `except` or `finally` before other work: the log of an embedding program can fail."""
    for place, statement in enumerate(block):
        if _is_log_call(statement) and not all(_is_last(later) for later in block[place + 1 :]):
            yield f"{shown}:{statement.lineno}: in an except or finally, restore the state before the log call"
        for inner in (getattr(statement, "body", None), getattr(statement, "orelse", None)):
            if isinstance(inner, list):
                yield from _of_cleanup(cast("list[ast.stmt]", inner), shown)


def _is_log_call(statement: ast.stmt) -> bool:
    called = statement.value.func if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) else None
    return isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id == "log"


def _is_last(statement: ast.stmt) -> bool:
    """True if it only leaves the block, waits for the next attempt, or is another log call."""
    if isinstance(statement, ast.If):
        return all(_is_last(inner) for inner in (*statement.body, *statement.orelse))
    leaves = isinstance(statement, ast.Return | ast.Raise | ast.Continue | ast.Break | ast.Pass)
    return leaves or _is_log_call(statement) or ast.unparse(statement).startswith("await anyio.sleep(")


def _of_definition(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, shown: Path) -> Iterator[str]:
    if (banned := _banned(node.name)) and not (_is_property(node) or _extends(node)):
        yield f"{shown}:{node.lineno} {node.name}: may not be called {banned}"
    if isinstance(node, ast.ClassDef):
        return
    length = (node.end_lineno or node.lineno) - node.lineno + 1
    if ast.get_docstring(node) is not None:
        length -= (node.body[0].end_lineno or 0) - node.body[0].lineno + 1
    if length > FUNCTION_LINES:
        yield f"{shown}:{node.lineno} {node.name}: {length} lines, the ceiling is {FUNCTION_LINES}"


def _extends(node: ast.AST) -> bool:
    """True if it calls the method of the same name that it extends: a library chose that name."""
    called = (inner.func for inner in ast.walk(node) if isinstance(inner, ast.Call))
    return any(
        isinstance(function, ast.Attribute)
        and function.attr == getattr(node, "name", None)
        and isinstance(function.value, ast.Call)
        and isinstance(function.value.func, ast.Name)
        and function.value.func.id == "super"
        for function in called
    )


def _is_property(node: ast.AST) -> bool:
    """True if it is an attribute, which an interface may have to spell as its implementation does."""
    return any(isinstance(mark, ast.Name) and mark.id == "property" for mark in getattr(node, "decorator_list", ()))


def _banned(name: str) -> str | None:
    return next((word for word in (part.lower() for part in _WORDS.findall(name)) if word in BANNED), None)


if __name__ == "__main__":
    found = list(complaints(Path(__file__).parent.parent))
    print("\n".join(found) or "all within the ceilings")
    sys.exit(bool(found))
