"""Which values a URI has for the variables of a template: read once from left to right, with one possible answer.

RFC 6570 defines expansion only; most templates could be matched in several ways. Those are refused when they are
declared: what is left can be read without trying, because a simply expanded value never holds a reserved character.
"""

import re
from dataclasses import dataclass
from urllib.parse import unquote

from gateway.definitions.uri_grammar import RESERVED, Expression, Part, refuse

_LONGEST_URI = 8192
_URI = re.compile(r"(?:[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2})+")
_STOP = re.compile(f"[{re.escape(RESERVED)}]")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True)
class Step:
    """A literal that must stand here, then the value of a variable; the last step may have no variable."""

    literal: str
    variable: str | None
    is_greedy: bool = False


@dataclass(frozen=True, slots=True)
class Matcher:
    """A template that can be matched in one way only.

    `steps` cover the path; `query` are the variables that follow as `name=value` in any order, beginning with
    `query_sign`; `fragment` is the variable after `#`.
    """

    steps: tuple[Step, ...]
    query: frozenset[str] = frozenset()
    query_sign: str = ""
    pairs_before: int = 0
    fragment: str | None = None

    def match(self, uri: str) -> dict[str, str] | None:
        """The values of the variables, decoded; None when the URI is not of this form."""
        if len(uri) > _LONGEST_URI or not _URI.fullmatch(uri):
            return None
        found: dict[str, str] = {}
        if self.fragment is not None:
            uri, mark, rest = uri.partition("#")
            if mark:
                found[self.fragment] = rest
        path, query = self._split(uri)
        is_found = _walk(self.steps, path, found) and self._read_query(query, found)
        return _decode(found) if is_found else None

    def _split(self, uri: str) -> tuple[str, str]:
        """The part that the steps cover, and the query variables as written."""
        if self.query_sign == "?":
            path, _, query = uri.partition("?")
            return path, query if query or not uri.endswith("?") else "?"
        if self.query_sign == "&":
            position = uri.find("?")
            for _ in range(self.pairs_before + 1):
                position = uri.find("&", position + 1)
                if position < 0:
                    return uri, ""
            return uri[:position], uri[position + 1 :] or "?"
        return uri, ""

    def _read_query(self, query: str, found: dict[str, str]) -> bool:
        for pair in query.split("&") if query else ():
            name, mark, value = pair.partition("=")
            if not mark or name not in self.query or name in found or "?" in value or "#" in value:
                return False
            found[name] = value
        return True


def make_matcher(parts: tuple[Part, ...]) -> Matcher:
    """The matcher of a template.

    Raises:
        ResourceValidationError: it could be matched in several ways; the message says where.
    """
    maker = _Maker()
    for part in parts:
        if isinstance(part, str):
            maker.add_literal(part)
        else:
            maker.add_expression(part)
    return maker.made()


class _Maker:
    """Puts a matcher together and refuses what would make it ambiguous."""

    def __init__(self) -> None:
        self._steps: list[Step] = []
        self._literal = ""
        self._written = ""
        self._query: list[str] = []
        self._sign = ""
        self._fragment: str | None = None
        self._names: set[str] = set()

    def add_literal(self, text: str) -> None:
        if self._sign or self._fragment is not None:
            raise refuse(f"for matching, nothing may follow the query and the fragment, as '{text}' does")
        self._literal += text
        self._written += text

    def add_expression(self, expression: Expression) -> None:
        self._check(expression)
        names = [variable.name for variable in expression.variables]
        if expression.sign in {"?", "&"}:
            self._add_query(expression, names)
        elif self._sign:
            if expression.sign != "#":
                raise refuse(f"for matching, {expression.text} cannot follow the query")
            self._add_fragment(expression, names)
        elif expression.sign == "#":
            self._add_fragment(expression, names)
        elif expression.sign == "/":
            for name in names:
                self._literal += "/"
                self._add_variable(name, expression)
        else:
            if len(names) > 1:
                raise refuse(f"for matching, {expression.text} may have one variable only")
            self._literal += "." if expression.sign == "." else ""
            self._add_variable(names[0], expression)

    def made(self) -> Matcher:
        steps = (*self._steps, Step(self._literal, None))
        return Matcher(
            steps=steps,
            query=frozenset(self._query),
            query_sign=self._sign,
            pairs_before=self._written.partition("?")[2].count("&"),
            fragment=self._fragment,
        )

    def _check(self, expression: Expression) -> None:
        if expression.sign == ";":
            raise refuse(f"for matching, {expression.text} is not supported: ';' parameters may be left out")
        if self._fragment is not None:
            raise refuse(f"for matching, {expression.text} cannot follow the fragment")
        for variable in expression.variables:
            if variable.explodes or variable.prefix is not None:
                raise refuse(f"for matching, {expression.text} may have neither '*' nor a prefix length")
            if variable.name in self._names:
                raise refuse(f"for matching, the variable '{variable.name}' may stand once only")
            self._names.add(variable.name)

    def _add_variable(self, name: str, expression: Expression) -> None:
        last = self._steps[-1] if self._steps else None
        if last is not None and last.is_greedy:
            raise refuse(f"for matching, {expression.text} cannot follow a '+' expression, which takes everything")
        if last is not None and not self._literal:
            raise refuse(f"for matching, text must stand between {{{last.variable}}} and {expression.text}")
        if last is not None and not _STOP.search(self._literal):
            raise refuse(
                f"for matching, '{self._literal}' does not separate {{{last.variable}}} from {expression.text}:"
                " a value may contain it"
            )
        self._steps.append(Step(self._literal, name, is_greedy=expression.sign == "+"))
        self._literal = ""

    def _add_query(self, expression: Expression, names: list[str]) -> None:
        if not self._sign:
            has_mark = "?" in self._written
            if has_mark is (expression.sign == "?"):
                raise refuse(f"for matching, {expression.text} needs {'no' if has_mark else 'a'} '?' before it")
            if any(step.is_greedy for step in self._steps):
                raise refuse(f"for matching, {expression.text} cannot follow a '+' expression, which takes everything")
            self._sign = expression.sign
        elif expression.sign != "&":
            raise refuse("for matching, there may be one '{?…}' only; continue it with '{&…}'")
        self._query.extend(names)

    def _add_fragment(self, expression: Expression, names: list[str]) -> None:
        if len(names) > 1 or "#" in self._written:
            raise refuse(f"for matching, {expression.text} must be the only '#' and have one variable")
        if any(step.is_greedy for step in self._steps):
            raise refuse(f"for matching, {expression.text} cannot follow a '+' expression, which takes everything")
        self._fragment = names[0]


def _walk(steps: tuple[Step, ...], path: str, found: dict[str, str]) -> bool:
    """Read the path step by step; each variable ends where the next literal must begin."""
    position = 0
    for step, following in zip(steps, (*steps[1:], None), strict=True):
        if not path.startswith(step.literal, position):
            return False
        position += len(step.literal)
        if step.variable is None or following is None:
            return position == len(path)
        end = _end_of_value(step, following, path, position)
        if end <= position:
            return False
        found[step.variable] = path[position:end]
        position = end
    return False


def _end_of_value(step: Step, following: Step, path: str, position: int) -> int:
    """Where the value ends: before the text that must follow it."""
    if step.is_greedy:
        return len(path) - len(following.literal)
    stop = _STOP.search(path, position)
    lead = _STOP.search(following.literal)
    if lead is None:
        return len(path) - len(following.literal) if stop is None else -1
    return -1 if stop is None else stop.start() - lead.start()


def _decode(found: dict[str, str]) -> dict[str, str] | None:
    values: dict[str, str] = {}
    for name, written in found.items():
        try:
            value = unquote(written, errors="strict")
        except UnicodeDecodeError:
            return None
        if _CONTROL.search(value):
            return None
        values[name] = value
    return values
