"""Every `.format(...)` call passes exactly the placeholders of its template.

A placeholder that is renamed on one side only raises KeyError while a message is written, which no test of the normal
path notices. Templates are literals, constants, values of tables, and alternatives of these.
"""

import ast
import string
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
UNKNOWN = "unknown template"

Constants = Mapping[str, Sequence[ast.expr]]


def test_templates_and_their_arguments_agree() -> None:
    """Ours: no message of the gateway fails to be written because of a renamed placeholder."""
    paths = [path for path in sorted((ROOT / "gateway").rglob("*.py")) if ".format(" in path.read_text()]
    found = [
        f"{path.relative_to(ROOT)}:{problem}" for path in paths for problem in problems(ast.parse(path.read_text()))
    ]
    assert found == []


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ('T = "at most {limit}"\nT.format(most=3)', "missing limit, unused most"),
        ('T = Markup("{} of {}")\nT.format(1)', "missing 1"),
        ('"{a}".format(a=1, b=2)', "unused b"),
        ('T = {"x": "{a}", "y": "none"}\nT["x"].format(b=1)', "missing a, unused b"),
        ('T: Final = "{a.name} {b[0]:>{width}}"\nT.format(a=1, b=2)', "missing width"),
        ("def show(text):\n    return text.format(a=1)", UNKNOWN),
        ('T = {"x": "{a}", "y": "none"}\nU = "{b}"\nT.get("z", U if d else "").format(a=1, b=2, c=3)', "unused c"),
    ],
)
def test_a_difference_is_found(source: str, problem: str) -> None:
    """Ours: the rule above can fail; an argument that one of several templates uses is used."""
    line = len(source.splitlines())
    assert list(problems(ast.parse(source))) == [f"{line}: {problem}"]


def problems(tree: ast.Module) -> Iterator[str]:
    """The calls of `.format` whose arguments are not the placeholders of their template, with their lines."""
    constants = {**_imported(tree), **_assigned(tree)}
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=template, attr="format"), args=args, keywords=keywords):
                if ast.unparse(template) == "msgspec.json":
                    continue
                given = {each.arg or "**" for each in keywords}
                given |= {"*" if isinstance(each, ast.Starred) else str(index) for index, each in enumerate(args)}
                problem = _compare(_texts(template, constants), given)
                if problem:
                    yield f"{node.lineno}: {problem}"
            case _:
                pass


def _compare(templates: Sequence[str], given: set[str]) -> str:
    if not templates:
        return UNKNOWN
    fields = {name for each in templates for name in _fields(each)}
    missing = set[str]() if given & {"*", "**"} else fields - given
    unused = given - fields - {"*", "**"}
    parts = (
        f"{word} {', '.join(sorted(names))}" for word, names in (("missing", missing), ("unused", unused)) if names
    )
    return ", ".join(parts)


def _fields(template: str) -> set[str]:
    """The names of a template's placeholders; positional ones are numbered. A format may contain placeholders too."""
    found: set[str] = set()
    for index, (_, field, spec, _) in enumerate(
        part for part in string.Formatter().parse(template) if part[1] is not None
    ):
        name = str(field).partition(".")[0].partition("[")[0]
        found |= {name or str(index)} | _fields(spec or "")
    return found


def _texts(node: ast.expr, constants: Constants) -> Sequence[str]:
    """The strings that an expression may have; empty if they are unknown."""
    match node:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.JoinedStr(values=parts):
            return ["".join(str(part.value) for part in parts if isinstance(part, ast.Constant))]
        case ast.Call(func=ast.Name(id="Markup"), args=[inner]):
            return _texts(inner, constants)
        case ast.Call(func=ast.Attribute(value=table, attr="get"), args=[_, *default]):
            return [text for each in (table, *default) for text in _texts(each, constants)]
        case ast.Subscript(value=table):
            return _texts(table, constants)
        case ast.BinOp(left=left, right=right):
            return ["".join(pair) for pair in product(_texts(left, constants), _texts(right, constants))]
        case ast.Name(id=name):
            inner_constants = {other: values for other, values in constants.items() if other != name}
            return [text for each in constants.get(name, ()) for text in _texts(each, inner_constants)]
        case ast.IfExp(body=body, orelse=orelse):
            return [*_texts(body, constants), *_texts(orelse, constants)]
        case ast.Dict(values=values) | ast.BoolOp(values=values) | ast.Tuple(elts=values) | ast.List(elts=values):
            return [text for each in values for text in _texts(each, constants)]
        case _:
            return []


def _assigned(tree: ast.Module) -> Constants:
    found: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                found.setdefault(name, []).append(value)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                found.setdefault(name, []).append(value)
            case _:
                pass
    return found


def _imported(tree: ast.Module) -> Constants:
    """The constants that a module imports from other modules of the gateway."""
    found: dict[str, Sequence[ast.expr]] = {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gateway."):
            names = {each.name for each in node.names if each.name.isupper()}
            path = ROOT / f"{str(node.module).replace('.', '/')}.py"
            if names and path.exists():
                found |= {
                    name: values for name, values in _assigned(ast.parse(path.read_text())).items() if name in names
                }
    return found
