"""Names of modules that no part of the gateway uses, such as code that a declaration has replaced."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
_PRODUCT = ("gateway", "examples", "benchmarks", "migrations")
_FOUND_BY_TYPE = ("gateway/kinds/", "gateway/catalog/kinds/")
"""Packages whose index takes every kind and every collection of their modules."""
_USED_ELSEWHERE = {"LIMITS": "tests/site/clients_part.py, which makes the table of docs/clients.md from it"}


def test_every_name_of_a_module_is_used() -> None:
    """Ours: a name that a declaration has replaced is deleted, also if a test still calls it (CNT-1)."""
    paths = [path for folder in _PRODUCT for path in sorted((ROOT / folder).rglob("*.py"))]
    modules = {path.relative_to(ROOT).as_posix(): ast.parse(path.read_text()) for path in paths}
    used = {name for module in modules.values() for name in _shared(module)} | _USED_ELSEWHERE.keys()
    ours = {path: module for path, module in modules.items() if path.startswith("gateway/")}
    unused = [
        f"{path}: {name}"
        for path, module in ours.items()
        for name in sorted({*_defined(module, finds_types=path.startswith(_FOUND_BY_TYPE))} - used - _loaded(module))
    ]

    assert unused == []


def test_a_name_that_nothing_uses_is_found() -> None:
    """Ours: a definition and an assignment do not count as uses, nor does a name in another module (CNT-1)."""
    module = ast.parse("def a(): ...\nB = 1\nC: int = 2\ndef d(): return C\n@decorated\ndef e(): ...\n")

    assert set(_defined(module)) - _loaded(module) == {"a", "B", "d"}


def _defined(module: ast.Module, *, finds_types: bool = False) -> Iterator[str]:
    """The names of a module but those of decorated definitions, which their decorator uses, and of the language."""
    for node in module.body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                if not name.startswith("__") and (not node.decorator_list or isinstance(node, ast.ClassDef)):
                    yield name
            case ast.Assign(value=ast.Call(func=ast.Name(id=made))) if finds_types and made.endswith(
                ("Kind", "Collection")
            ):
                pass
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                if not name.startswith("__"):
                    yield name
            case _:
                pass


def _loaded(module: ast.Module) -> set[str]:
    """The names that a module itself reads, also in the text of a postponed annotation."""
    names = {one.id for one in ast.walk(module) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)}
    return names | set(_texts(module))


def _shared(module: ast.Module) -> Iterator[str]:
    """The names that a module takes from others: by import, as an attribute, or in a text such as `module:NAME`."""
    for node in ast.walk(module):
        if isinstance(node, ast.ImportFrom):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.Attribute):
            yield node.attr
    yield from _texts(module)


def _texts(module: ast.Module) -> Iterator[str]:
    for node in ast.walk(module):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " not in node.value:
            yield from node.value.replace("[", ":").replace("]", ":").replace(".", ":").split(":")
