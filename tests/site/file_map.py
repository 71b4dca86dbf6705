"""The file map: each module of the gateway with the first sentence of its docstring."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

GATEWAY = Path(__file__).parents[2] / "gateway"


def file_map() -> str:
    """One table per package, in the order of their paths."""
    return "\n".join(_sections()).rstrip()


def _sections() -> Iterator[str]:
    for package in sorted({path.parent for path in GATEWAY.rglob("*.py")}):
        modules = [path for path in sorted(package.glob("*.py")) if path.name != "__init__.py"]
        yield f"## `{package.relative_to(GATEWAY.parent)}/`\n\n{_sentence(package / '__init__.py')}\n"
        if modules:
            yield "\n".join(("| module | content |", "| --- | --- |", *map(_row, modules), ""))


def _row(path: Path) -> str:
    return f"| `{path.name}` | {_sentence(path)} |"


def _sentence(path: Path) -> str:
    """The first sentence of a module's docstring."""
    docstring = " ".join((ast.get_docstring(ast.parse(path.read_text())) or "").partition("\n\n")[0].split())
    return re.split(r"(?<=[.!?]) (?=[A-Z`])", docstring)[0].replace("|", "\\|")
