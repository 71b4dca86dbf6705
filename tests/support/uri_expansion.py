"""Expansion of URI templates at all four levels of RFC 6570: what clients do, and the inverse of matching in tests."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from gateway.definitions.uri.grammar import RESERVED, Expression, Part, Variable, parse_parts, refuse
from gateway.domain.json_access import as_list, as_object, is_number

_MAX_RESULT_LENGTH = 64 * 1024
_TRIPLET = re.compile(r"(%[0-9A-Fa-f]{2})")


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


def expand(template: str, variables: Mapping[str, object]) -> str:
    """Return the URI reference for these variables: texts, numbers, booleans, lists and maps of them.

    A null or missing value, an empty list and an empty map are undefined: they expand to nothing.

    Raises:
        ResourceValidationError: the text is not a URI template, a value has a wrong type or is not valid Unicode, or
            the result is longer than 64 Ki characters.
    """
    return _expand(parse_parts(template), variables)


def _expand(parts: Sequence[Part], variables: Mapping[str, object]) -> str:
    written: list[str] = []
    length = 0
    for part in parts:
        written.append(part if isinstance(part, str) else _write(part, variables))
        length += len(written[-1])
        if length > _MAX_RESULT_LENGTH:
            raise refuse(f"the expanded URI is longer than {_MAX_RESULT_LENGTH} characters")
    return "".join(written)


def _write(expression: Expression, variables: Mapping[str, object]) -> str:
    operator = OPERATORS[expression.sign]
    written = [
        text
        for variable in expression.variables
        for text in _write_variable(operator, variable, variables.get(variable.name))
    ]
    return operator.first + operator.separator.join(written) if written else ""


def _write_variable(operator: ExpressionOperator, variable: Variable, value: object) -> list[str]:
    """Return the expansion of one variable: no text, one text, or one text per element if the variable explodes."""
    members = as_object(value)
    elements = as_list(value)
    if members is None and elements is None:
        text = _text(value)
        return [] if text is None else [_scalar(operator, variable, text)]
    if variable.prefix is not None:
        raise refuse(f"the prefix of '{variable.name}' cannot be taken of a list or map")
    pairs = _pairs(members) if members is not None else None
    texts = [text for text in map(_text, elements or ()) if text is not None]
    if not pairs and not texts:
        return []
    if variable.explodes:
        if pairs is not None:
            return [_named(operator, _encode(operator, name), _encode(operator, text)) for name, text in pairs]
        return [_named_if_asked(operator, variable, _encode(operator, text)) for text in texts]
    flat = texts if pairs is None else [text for pair in pairs for text in pair]
    return [_named_if_asked(operator, variable, ",".join(_encode(operator, text) for text in flat))]


def _scalar(operator: ExpressionOperator, variable: Variable, text: str) -> str:
    return _named_if_asked(operator, variable, _encode(operator, text[: variable.prefix]))


def _named_if_asked(operator: ExpressionOperator, variable: Variable, written: str) -> str:
    return _named(operator, variable.name, written) if operator.is_named else written


def _named(operator: ExpressionOperator, name: str, written: str) -> str:
    if written or not operator.is_named:
        return f"{name}={written}"
    return name + operator.if_empty


def _pairs(members: Mapping[str, object]) -> list[tuple[str, str]]:
    written = [(name, _text(value)) for name, value in members.items()]
    return [(name, text) for name, text in written if text is not None]


def _text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if is_number(value):
        return str(value)
    raise refuse("a value must be a text, a number, a boolean, or a list or map of these")


def _encode(operator: ExpressionOperator, text: str) -> str:
    try:
        if not operator.allows_reserved:
            return quote(text, safe="~")
        return "".join(
            part if index % 2 else quote(part, safe=RESERVED + "~") for index, part in enumerate(_TRIPLET.split(text))
        )
    except UnicodeEncodeError:
        raise refuse("a value is not valid Unicode") from None
