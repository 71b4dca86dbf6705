"""Numbers that bound a tenant, a request or a wait, and that have no address (`python -m tests.limits`).

Such a constant is called `MAX_…`, `MIN_…`, `…_S`, `…_BYTES` or `…_LIMIT`. It belongs into the `limits.py` of its
package, into `gateway/kinds` or into the settings, with its reason beside it: a docstring below, or a comment. The file
`limits_elsewhere.txt` lists those of other modules; it only shrinks, and `--write` only removes lines. Constants of one
name and one value in two packages are one constant, which the lower layer has; `limits_equal.txt` lists those that are
equal by chance, or whose packages may not import each other.
"""

import ast
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path(__file__).parents[1]
LISTED = Path(__file__).parent / "limits_elsewhere.txt"
EQUAL = Path(__file__).parent / "limits_equal.txt"
_NAME = re.compile(r"_?(?:MAX_\w+|MIN_\w+|\w+_S|\w+_BYTES|(?:\w+_)?LIMITS?(?:_\w+)?)")
_ARITHMETIC = re.compile(r"[0-9*_. <()+]+")
_CONSTANT = re.compile(r"_?[A-Z][A-Z0-9_]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """One constant with a number."""

    module: str
    name: str
    value: str
    has_reason: bool

    @property
    def has_address(self) -> bool:
        """True in a `limits.py`, a declaration of a kind or the settings."""
        is_limits = self.module.endswith("/limits.py")
        return is_limits or self.module.startswith("gateway/kinds/") or self.module == "gateway/settings.py"

    @property
    def meaning(self) -> tuple[str, str, str]:
        """The package, the name and the value: two constants that agree in them mean the same."""
        return self.module.rpartition("/")[0], self.name.lstrip("_"), self.value

    @property
    def same(self) -> str:
        """The name and the value, which two packages should not have."""
        number = str(eval(self.value)) if _ARITHMETIC.fullmatch(self.value) else self.value
        return f"{self.name.lstrip('_')} {number}"

    @property
    def line(self) -> str:
        """The line of the file."""
        return f"{self.module} {self.name}"


def bounds(root: Path) -> Iterator[Bound]:
    """Yield the constants of all modules."""
    for path in sorted((root / "gateway").rglob("*.py")):
        yield from bounds_of(path.read_text(), str(path.relative_to(root)))


def bounds_of(text: str, module: str) -> Iterator[Bound]:
    """Yield the constants of one module."""
    lines, body = text.splitlines(), ast.parse(text).body
    for place, node in enumerate(body):
        after = body[place + 1] if place + 1 < len(body) else None
        for name, value in _assigned(node):
            if _NAME.fullmatch(name) and _CONSTANT.fullmatch(name) and _is_number(value):
                end = node.end_lineno or node.lineno
                is_commented = any("# " in line for line in lines[node.lineno - 1 : end])
                is_commented |= lines[node.lineno - 2].startswith("# ") if node.lineno > 1 else False
                yield Bound(
                    module=module,
                    name=name,
                    value=ast.unparse(value),
                    has_reason=is_commented or _is_docstring(after),
                )


def complaints(found: Sequence[Bound], listed: Sequence[str]) -> Iterator[str]:
    """Yield constants without an address, an addressed one without a reason or with a copy, and lines without use."""
    elsewhere = {one.line for one in found if not one.has_address}
    for one in found:
        if not one.has_address and one.line not in listed:
            yield f"{one.module}: {one.name} belongs into the limits.py of its package, with unit and reason"
        if one.has_address and not one.has_reason:
            yield f"{one.module}: {one.name} has no reason beside it"
    for line in listed:
        if line not in elsewhere:
            yield f"{LISTED.name}: {line} is no longer there; remove the line (python -m tests.limits --write)"
    addressed = {one.meaning: one.module for one in found if one.has_address}
    for one in found:
        owner = addressed.get(one.meaning)
        if owner not in {None, one.module}:
            yield f"{one.module}: {one.name} is a copy of the constant of {owner}"


def equal_complaints(found: Sequence[Bound], listed: Sequence[str]) -> Iterator[str]:
    """Yield constants of one name and value in several packages, and lines that are no longer true."""
    modules: dict[str, set[str]] = {}
    for one in found:
        if one.has_address:
            modules.setdefault(one.same, set()).add(one.module)
    several = {same for same, places in modules.items() if len(places) > 1}
    for same in sorted(several - set(listed)):
        yield f"{same} is in {', '.join(sorted(modules[same]))}: import that of the lower layer, or use another name"
    for line in sorted(set(listed) - several):
        yield f"{EQUAL.name}: {line} is no longer in two packages; remove the line (python -m tests.limits --write)"


def main(arguments: Sequence[str]) -> int:
    """Print the complaints, after the removal of unused lines if asked to; return the exit code."""
    found, listed = list(bounds(_ROOT)), LISTED.read_text().split("\n")[:-1]
    if "--write" in arguments:
        elsewhere = {one.line for one in found if not one.has_address}
        listed = [line for line in listed if line in elsewhere]
        LISTED.write_text("".join(f"{line}\n" for line in listed))
    equal = EQUAL.read_text().split("\n")[:-1]
    if "--write" in arguments:
        equal = [
            line for line in equal if not any(f": {line} is no" in each for each in equal_complaints(found, equal))
        ]
        EQUAL.write_text("".join(f"{line}\n" for line in equal))
    complained = [*complaints(found, listed), *equal_complaints(found, equal)]
    print("\n".join(complained) or f"{len(listed)} limits without an address, none is new")
    return bool(complained)


def _assigned(node: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names of an assignment with their values."""
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
        yield node.target.id, node.value
    elif isinstance(node, ast.Assign) and len(node.targets) == 1:
        target, value = node.targets[0], node.value
        if isinstance(target, ast.Name):
            yield target.id, value
        elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            yield from (
                (one.id, of) for one, of in zip(target.elts, value.elts, strict=False) if isinstance(one, ast.Name)
            )


def _is_number(value: ast.expr) -> bool:
    match value:
        case ast.Constant():
            return isinstance(value.value, int | float) and not isinstance(value.value, bool)
        case ast.BinOp():
            return _is_number(value.left) and _is_number(value.right)
        case ast.Name():
            return _CONSTANT.fullmatch(value.id) is not None
        case ast.Call(func=ast.Name(id="timedelta")):
            return True
        case _:
            return False


def _is_docstring(node: ast.stmt | None) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
