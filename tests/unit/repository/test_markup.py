"""No string is made of markup: an f-string of it is a `str` again, which the page escapes, so its tags are text.

`Markup.format` and `Markup.join` keep markup. `str(page)` is allowed: it is the complete page.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def test_no_string_is_made_of_markup() -> None:
    """Ours: no page shows its own tags as text (SAF-3)."""
    trees = {path: ast.parse(path.read_text()) for path in sorted((ROOT / "gateway" / "web").rglob("*.py"))}
    makers = {name for tree in trees.values() for name in _functions(tree)}
    assert {"moment", "alert"} <= makers
    found = [f"{path.relative_to(ROOT)}:{line}" for path, tree in trees.items() for line in problems(tree, makers)]
    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        'f"at {moment(at)}"',
        'f"{_TABLE} {1}"',
        "f'{Markup(\"<b>{}</b>\").format(1)}'",
        '"at {}".format(moment(at))',
        '"at {when}".format(when=moment(at))',
        '", ".join([moment(at)])',
        '", ".join(moment(one) for one in many)',
        '"at %s" % moment(at)',
        '"at %s: %s" % (at, moment(at))',
        'text = link if at else "none"\nf"{text}"',
    ],
)
def test_a_string_of_markup_is_found(line: str) -> None:
    """Ours: the rule above can fail, for each way to make a string."""
    source = f'_TABLE = Markup("<p>")\ndef show(link: Markup) -> str:\n    return 1\n{line}'
    assert list(problems(ast.parse(source), {"moment"})) == [len(source.splitlines())]


def test_markup_of_markup_is_allowed() -> None:
    """Ours: a function that keeps markup is no problem."""
    source = (
        'a = Markup("<p>{}</p>").format(moment(at))\nb = Markup("").join([a])\nc = str(b)\nf"{at}"\n", ".join(many)'
    )
    assert list(problems(ast.parse(source), {"moment"})) == []


def problems(tree: ast.Module, makers: set[str]) -> Iterator[int]:
    """The lines of strings that are made of markup."""
    names = _named(tree, makers)
    for node in ast.walk(tree):
        match node:
            case ast.JoinedStr(values=parts):
                used: list[ast.expr] = [part.value for part in parts if isinstance(part, ast.FormattedValue)]
            case ast.Call(func=ast.Attribute(value=ast.Constant(value=str()), attr="format" | "join"), args=args):
                used = [*args, *(each.value for each in node.keywords)]
            case ast.BinOp(left=ast.Constant(value=str()), op=ast.Mod(), right=right):
                used = [right]
            case _:
                continue
        if any(_is_markup(part, names, makers) for each in used for part in _parts(each)):
            yield node.lineno


def _parts(node: ast.expr) -> list[ast.expr]:
    match node:
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return parts
        case ast.GeneratorExp(elt=part) | ast.ListComp(elt=part) | ast.Starred(value=part):
            return [part]
        case _:
            return [node]


def _functions(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name, returns=ast.Name(id="Markup")):
                yield name
            case _:
                pass


def _named(tree: ast.Module, makers: set[str]) -> set[str]:
    """Names of constants, variables, parameters and attributes that are markup."""
    found = set[str]()
    for node in ast.walk(tree):
        match node:
            case ast.arg(arg=name, annotation=ast.Name(id="Markup")):
                found.add(name)
            case ast.AnnAssign(target=ast.Name(id=name), annotation=ast.Name(id="Markup")):
                found.add(name)
            case _:
                pass
    for node in sorted((each for each in ast.walk(tree) if isinstance(each, ast.Assign)), key=lambda each: each.lineno):
        for target in node.targets:
            if isinstance(target, ast.Name) and _is_markup(node.value, found, makers):
                found.add(target.id)
    return found


def _is_markup(node: ast.expr, names: set[str], makers: set[str]) -> bool:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in names
        case ast.Call(func=ast.Name(id=name)) if name == "Markup" or name in makers:
            return True
        case ast.Call(func=ast.Attribute(value=inner, attr="format" | "join")):
            return _is_markup(inner, names, makers)
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in makers
        case ast.IfExp(body=body, orelse=orelse):
            return _is_markup(body, names, makers) or _is_markup(orelse, names, makers)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _is_markup(left, names, makers) or _is_markup(right, names, makers)
        case _:
            return False
