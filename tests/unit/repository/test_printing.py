"""The command line prints through one module, which makes control characters visible."""

import ast
from collections.abc import Iterator
from pathlib import Path

_ROOT = Path(__file__).parents[3] / "gateway" / "cli"
_WAYS = frozenset(
    {"echo", "secho", "echo_via_pager", "prompt", "confirm", "pause", "edit", "progressbar", "getchar", "clear"}
    | {"get_text_stream", "get_binary_stream", "style"}
)
"""The functions of click that write to the terminal."""
_RICH = frozenset({"Console", "get_console", "inspect", "print", "print_json", "pager", "Live", "Progress", "Prompt"})
"""The names of Rich that write to the terminal or read markup."""
_EXCEPTIONS = {
    "audit_verifier.py": "is copied to other machines without the gateway; it has an escape of its own",
    "output/printing.py": "is the one way",
    "output/tables.py": "has Rich lay out tables, and prints nothing",
}


def test_commands_print_through_one_module() -> None:
    """Attack: a text of a hostile server that is printed another way controls the operator's terminal (CLI-1)."""
    found = [
        f"{path.relative_to(_ROOT)}:{line}: {way}"
        for path in sorted(_ROOT.rglob("*.py"))
        if str(path.relative_to(_ROOT)) not in _EXCEPTIONS
        for line, way in _printed(ast.parse(path.read_text()))
    ]

    assert found == []


def test_other_ways_are_found() -> None:
    """Ours: the check above sees each way to print."""
    ways = ["print(1)", "click.echo(1)", "sys.stdout.write(1)", "sys.stderr.writelines([])", "from click import echo"]
    ways += ["from sys import stdout", "print(1, file=sys.stderr)", "write = print", "out = sys.__stdout__"]
    ways += ["from rich import print", "from rich.console import Console"]

    assert [len(list(_printed(ast.parse(way)))) for way in ways] == [1] * len(ways)


def _printed(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.Name(id="print"):
                yield node.lineno, "print"
            case ast.Attribute(value=ast.Name(id="click"), attr=name) if name in _WAYS:
                yield node.lineno, f"click.{name}"
            case ast.Attribute(
                value=ast.Attribute(value=ast.Name(id="sys"), attr="stdout" | "stderr" as stream),
                attr="write" | "writelines" | "buffer",
            ):
                yield node.lineno, f"sys.{stream}"
            case ast.Attribute(value=ast.Name(id="sys"), attr="__stdout__" | "__stderr__" as stream):
                yield node.lineno, f"sys.{stream}"
            case ast.ImportFrom(module=str(module), names=names) if module.partition(".")[0] == "rich":
                yield from ((node.lineno, f"rich {each.name}") for each in names if each.name in _RICH)
            case ast.ImportFrom(module="click" | "sys", names=names):
                for each in names:
                    if each.name in _WAYS or each.name in {"stdout", "stderr"}:
                        yield node.lineno, each.name
            case _:
                pass
