"""Parser of URI templates (RFC 6570): splits a template into literal text and expressions."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import quote

from gateway.errors import Fault, ResourceValidationError

LONGEST = 2048
RESERVED = ":/?#[]@!$&'()*+,;="
"""Reserved characters (RFC 3986, 2.2). A value in a simple expression `{name}` has them percent-encoded."""

_FUTURE_OPERATORS = "=,!@|"
_LITERAL = re.compile(r"""(?:%[0-9A-Fa-f]{2}|[^\x00-\x20"%<>\\^`{|}\x7f-\x9f\ud800-\udfff])*""")
_EXPRESSION = re.compile(r"([+#./;?&]?)([^{}+#/;?&]*)")
_NAME = r"(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})+(?:\.(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})+)*"
_VARIABLE = re.compile(rf"({_NAME})(?:(\*)|:([1-9][0-9]{{0,3}}))?")


@dataclass(frozen=True, slots=True)
class ExpressionOperator:
    """Expansion rules of an operator (RFC 6570, appendix A)."""

    first: str
    separator: str
    is_named: bool = False
    if_empty: str = ""
    allows_reserved: bool = False


OPERATORS: Mapping[str, ExpressionOperator] = {
    "": ExpressionOperator("", ","),
    "+": ExpressionOperator("", ",", allows_reserved=True),
    "#": ExpressionOperator("#", ",", allows_reserved=True),
    ".": ExpressionOperator(".", "."),
    "/": ExpressionOperator("/", "/"),
    ";": ExpressionOperator(";", ";", is_named=True),
    "?": ExpressionOperator("?", "&", is_named=True, if_empty="="),
    "&": ExpressionOperator("&", "&", is_named=True, if_empty="="),
}


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable in an expression; `prefix` is the length in the modifier `:n`, `explodes` the modifier `*`."""

    name: str
    explodes: bool = False
    prefix: int | None = None


@dataclass(frozen=True, slots=True)
class Expression:
    """One `{…}`."""

    text: str
    sign: str
    variables: tuple[Variable, ...]

    @property
    def operator(self) -> ExpressionOperator:
        """The expansion rules of the expression's operator."""
        return OPERATORS[self.sign]


Part: TypeAlias = str | Expression


def parse_parts(template: str) -> tuple[Part, ...]:
    """Return the literals, percent-encoded as in a URI, and the expressions, in order.

    Raises:
        ResourceValidationError: the text is not a URI template.
    """
    if len(template) > LONGEST:
        raise refuse(f"a URI template has at most {LONGEST} characters")
    parts: list[Part] = []
    position = 0
    while position < len(template):
        literal = _LITERAL.match(template, position)
        if literal is not None and literal[0]:
            parts.append(quote(literal[0], safe=RESERVED + "%~"))
            position = literal.end()
        elif template[position] == "{":
            end = template.find("}", position)
            if end < 0:
                raise refuse("'}' is missing")
            parts.append(_expression(template[position + 1 : end]))
            position = end + 1
        else:
            raise refuse(f"character {position + 1} is not allowed in a URI template")
    return tuple(parts)


def refuse(reason: str) -> ResourceValidationError:
    """Return the error for an unusable URI template."""
    return ResourceValidationError(f"uriTemplate: {reason}", faults=[Fault(pointer="", reason=reason)])


def _expression(text: str) -> Expression:
    if text[:1] and text[0] in _FUTURE_OPERATORS:
        raise refuse(f"the operator '{text[0]}' is reserved and has no meaning yet")
    found = _EXPRESSION.fullmatch(text)
    if found is None or not found[2]:
        raise refuse(f"'{{{text}}}' is not an expression")
    return Expression("{" + text + "}", found[1], tuple(_variable(part) for part in found[2].split(",")))


def _variable(text: str) -> Variable:
    found = _VARIABLE.fullmatch(text)
    if found is None:
        raise refuse(f"'{text}' is not a variable")
    return Variable(found[1], explodes=found[2] is not None, prefix=int(found[3]) if found[3] else None)
