"""URI templates (RFC 6570) that match URIs: one pass from left to right, with at most one result.

RFC 6570 defines only expansion, the task of clients; many templates match a URI in several ways. `UriTemplate.parse`
refuses ambiguous templates. Other templates need no backtracking, because a value in a simple expression contains no
reserved character. Decision 30 has the reasons for this parser.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote

from gateway.definitions.uri.grammar import RESERVED, Expression, Part, parse_parts, refuse
from gateway.definitions.uri.limits import MAX_MATCHED_URI_LENGTH
from gateway.errors import ResourceValidationError

_URI = re.compile(r"(?:[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2})+")
_STOP = re.compile(f"[{re.escape(RESERVED)}]")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True)
class UriTemplate:
    """A URI template that supports matching; `lead` is the text before the first expression."""

    text: str
    variables: tuple[str, ...] = field(compare=False)
    lead: str = field(compare=False)
    matcher: "Matcher" = field(compare=False, repr=False)

    @classmethod
    def parse(cls, text: str) -> "UriTemplate":
        """Parse a template for matching.

        Raises:
            ResourceValidationError: the text is not a URI template, has no variable, is ambiguous, or has an expression
                that matching does not support. The message names an alternative.
        """
        parts = parse_parts(text)
        names = [variable.name for part in parts if isinstance(part, Expression) for variable in part.variables]
        if not names:
            raise refuse("it has no variable; create a resource instead")
        lead = parts[0] if isinstance(parts[0], str) else ""
        return cls(text, tuple(dict.fromkeys(names)), lead, _make_matcher(parts))

    def match(self, uri: str) -> dict[str, str] | None:
        """Return the decoded values of the variables; None if the URI does not match.

        A URI does not match if a decoded value is not UTF-8 or contains a control character. Variables of the query and
        the fragment may be absent.
        """
        return self.matcher.match(uri)


@dataclass(frozen=True, slots=True)
class Step:
    """A required literal, followed by the value of a variable; the last step may have no variable."""

    literal: str
    variable: str | None
    is_greedy: bool = False


@dataclass(frozen=True, slots=True)
class Matcher:
    """The matcher of an unambiguous template.

    `steps` match the URI up to the query variables. `query` names the variables that follow as `name=value` in any
    order; `query_sign` is the sign before them. `pairs_before` counts the `&` in the literal query. `fragment` is the
    variable after `#`.
    """

    steps: tuple[Step, ...]
    query: frozenset[str] = frozenset()
    query_sign: str = ""
    pairs_before: int = 0
    fragment: str | None = None

    def match(self, uri: str) -> dict[str, str] | None:
        """Return the decoded values of the variables; None if the URI does not match."""
        if len(uri) > MAX_MATCHED_URI_LENGTH or not _URI.fullmatch(uri):
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
        """Return the part for the steps, and the undecoded query variables."""
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


def _make_matcher(parts: tuple[Part, ...]) -> Matcher:
    builder = _MatcherBuilder()
    for part in parts:
        if isinstance(part, str):
            builder.add_literal(part)
        else:
            builder.add_expression(part)
    return builder.build()


class _MatcherBuilder:
    """Builds a matcher; refuses ambiguous and unsupported templates."""

    def __init__(self) -> None:
        self._steps: list[Step] = []
        self._literal = ""
        self._literal_text = ""
        self._query: list[str] = []
        self._sign = ""
        self._fragment: str | None = None
        self._names: set[str] = set()

    def add_literal(self, text: str) -> None:
        if self._sign or self._fragment is not None:
            raise _refuse(f"nothing may follow the query and the fragment, as '{text}' does; put it before them")
        self._literal += text
        self._literal_text += text

    def add_expression(self, expression: Expression) -> None:
        self._check(expression)
        names = [variable.name for variable in expression.variables]
        if expression.sign in {"?", "&"}:
            self._add_query(expression, names)
        elif self._sign:
            if expression.sign != "#":
                raise _refuse(f"{expression.text} cannot follow the query; put it before")
            self._add_fragment(expression, names)
        elif expression.sign == "#":
            self._add_fragment(expression, names)
        elif expression.sign == "/":
            for name in names:
                self._literal += "/"
                self._add_variable(name, expression)
        else:
            if len(names) > 1:
                raise _refuse(f"{expression.text} may have one variable only; use {_format_expression('/', names)}")
            self._literal += "." if expression.sign == "." else ""
            self._add_variable(names[0], expression)

    def build(self) -> Matcher:
        steps = (*self._steps, Step(self._literal, None))
        return Matcher(
            steps=steps,
            query=frozenset(self._query),
            query_sign=self._sign,
            pairs_before=self._literal_text.partition("?")[2].count("&"),
            fragment=self._fragment,
        )

    def _check(self, expression: Expression) -> None:
        text, sign = expression.text, expression.sign
        names = [variable.name for variable in expression.variables]
        if sign == ";":
            raise _refuse(
                f"{text} is not supported: ';' parameters may be omitted; use {_format_expression('?', names)}"
            )
        if self._fragment is not None:
            raise _refuse(f"{text} cannot follow the fragment; put it before")
        if any(variable.explodes for variable in expression.variables):
            raise _refuse(f"{text} may be one value, a list or a map; use {_alternatives_to_explode(sign, names)}")
        if any(variable.prefix is not None for variable in expression.variables):
            raise _refuse(f"{text} contains only the beginning of a value; use {_format_expression(sign, names)}")
        for name in names:
            if name in self._names:
                raise _refuse(
                    f"the variable '{name}' may occur once only; use {_format_expression(sign, [f'{name}_2'])}"
                )
            self._names.add(name)

    def _add_variable(self, name: str, expression: Expression) -> None:
        last = self._steps[-1] if self._steps else None
        if last is not None and last.variable is not None:
            self._check_boundary(last.variable, name, expression)
        self._steps.append(Step(self._literal, name, is_greedy=expression.sign == "+"))
        self._literal = ""

    def _check_boundary(self, before: str, name: str, expression: Expression) -> None:
        """Refuse a variable without a delimiter between it and the previous variable."""
        self._refuse_greedy(expression, f"{{{name}}}/{{+{before}}}")
        separated = f"{{{before}}}/{_format_expression('+' if expression.sign == '+' else '', [name])}"
        if not self._literal:
            raise _refuse(f"text must separate {{{before}}} from {expression.text}; use {separated}")
        if not _STOP.search(self._literal):
            reason = (
                f"'{self._literal}' does not separate {{{before}}} from {expression.text}, because a value may "
                f"contain it"
            )
            raise _refuse(f"{reason}; use {separated}")

    def _refuse_greedy(self, expression: Expression, instead: str) -> None:
        if self._steps and self._steps[-1].is_greedy:
            raise _refuse(f"{expression.text} cannot follow a '+' expression, which matches everything; use {instead}")

    def _add_query(self, expression: Expression, names: list[str]) -> None:
        if not self._sign:
            self._refuse_greedy(expression, self._last_as_simple() + expression.text)
            has_mark = "?" in self._literal_text
            if has_mark is (expression.sign == "?"):
                use = _format_expression("&" if has_mark else "?", names)
                raise _refuse(f"{expression.text} needs {'no' if has_mark else 'a'} '?' before it; use {use}")
            self._sign = expression.sign
        elif expression.sign != "&":
            raise _refuse(f"there may be one '{{?…}}' only; use {_format_expression('&', names)}")
        self._query.extend(names)

    def _add_fragment(self, expression: Expression, names: list[str]) -> None:
        if "#" in self._literal_text:
            raise _refuse(f"{expression.text} must be the only '#'; use it without the '#' before it")
        if len(names) > 1:
            raise _refuse(f"{expression.text} must have one variable; use {_format_expression('#', names[:1])}")
        self._refuse_greedy(expression, self._last_as_simple() + expression.text)
        self._fragment = names[0]

    def _last_as_simple(self) -> str:
        return f"{{{self._steps[-1].variable}}}{self._literal}" if self._steps else ""


def _refuse(reason: str) -> ResourceValidationError:
    return refuse(f"for matching, {reason}")


def _format_expression(sign: str, names: Sequence[str]) -> str:
    return f"{{{sign}{','.join(names)}}}"


def _alternatives_to_explode(sign: str, names: Sequence[str]) -> str:
    """Return the alternatives in a message: for one value and, in a path, for several segments."""
    one = _format_expression(sign, names)
    if sign not in {"", "/"} or len(names) > 1:
        return one
    return f"{one} for one segment, or {sign}{{+{names[0]}}} at the end for several"


def _walk(steps: tuple[Step, ...], path: str, found: dict[str, str]) -> bool:
    """Match the path step by step. The value of a variable ends where the literal of the next step begins."""
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
    """Return the end of the variable's value, where the literal of the next step must begin; -1 if there is none."""
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
