"""URI templates (RFC 6570): expansion at all four levels, and matching of unambiguous templates."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

from gateway.definitions.json_access import as_list, as_object, is_number
from gateway.definitions.uri.grammar import (
    RESERVED,
    Expression,
    ExpressionOperator,
    Part,
    Variable,
    parse_parts,
    refuse,
)
from gateway.definitions.uri.matching import Matcher, make_matcher

_LONGEST_RESULT = 64 * 1024
_TRIPLET = re.compile(r"(%[0-9A-Fa-f]{2})")


def expand(template: str, variables: Mapping[str, object]) -> str:
    """Return the URI reference for these variables: texts, numbers, booleans, lists and maps of them.

    A null or missing value, an empty list and an empty map are undefined: they expand to nothing.

    Raises:
        ResourceValidationError: the text is not a URI template, a value has a wrong type or is not valid Unicode, or
            the result is longer than 64 Ki characters.
    """
    return _expand(parse_parts(template), variables)


@dataclass(frozen=True, slots=True)
class UriTemplate:
    """A URI template that supports matching and expansion."""

    text: str
    variables: tuple[str, ...] = field(compare=False)
    parts: tuple[Part, ...] = field(compare=False, repr=False)
    matcher: Matcher = field(compare=False, repr=False)

    @classmethod
    def parse(cls, text: str) -> "UriTemplate":
        """Parse a template for matching.

        Raises:
            ResourceValidationError: the text is not a URI template, has no variable, or does not support matching.
        """
        parts = parse_parts(text)
        names = [variable.name for part in parts if isinstance(part, Expression) for variable in part.variables]
        if not names:
            raise refuse("it has no variable; register a resource instead")
        return cls(text, tuple(dict.fromkeys(names)), parts, make_matcher(parts))

    def match(self, uri: str) -> dict[str, str] | None:
        """Return the decoded values of the variables; None if the URI does not match.

        A URI does not match if a decoded value is not UTF-8 or contains a control character. Variables of the query and
        the fragment may be absent.
        """
        return self.matcher.match(uri)

    def expand(self, variables: Mapping[str, object]) -> str:
        """Return the URI for these values.

        Raises:
            ResourceValidationError: a value has a wrong type or is not valid Unicode, or the URI is too long.
        """
        return _expand(self.parts, variables)

    @property
    def lead(self) -> str:
        """The text before the first variable."""
        return self.parts[0] if isinstance(self.parts[0], str) else ""


def _expand(parts: Sequence[Part], variables: Mapping[str, object]) -> str:
    written: list[str] = []
    length = 0
    for part in parts:
        written.append(part if isinstance(part, str) else _write(part, variables))
        length += len(written[-1])
        if length > _LONGEST_RESULT:
            raise refuse(f"the expanded URI is longer than {_LONGEST_RESULT} characters")
    return "".join(written)


def _write(expression: Expression, variables: Mapping[str, object]) -> str:
    operator = expression.operator
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
