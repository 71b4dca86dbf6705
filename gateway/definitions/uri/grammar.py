"""Grammar of URIs (RFC 3986), and parser of URI templates (RFC 6570) into literal text and expressions."""

import re
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import quote

from gateway.domain.members.limits import MAX_URL_LENGTH
from gateway.errors import Fault, ResourceValidationError

FORM = r"^[A-Za-z][A-Za-z0-9+.-]*:(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+$"
"""Pattern of absolute URIs for JSON Schemas. `is_uri` also limits the length, and refuses a second `#`."""
RESERVED = ":/?#[]@!$&'()*+,;="
"""Reserved characters (RFC 3986, 2.2). A value in a simple expression `{name}` has them percent-encoded."""

_URI = re.compile(FORM)
_FUTURE_OPERATORS = "=,!@|"
_LITERAL = re.compile(r"""(?:%[0-9A-Fa-f]{2}|[^\x00-\x20"%<>\\^`{|}\x7f-\x9f\ud800-\udfff])*""")
_EXPRESSION = re.compile(r"([+#./;?&]?)([^{}+#/;?&]*)")
_NAME = r"(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})+(?:\.(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})+)*"
_VARIABLE = re.compile(rf"({_NAME})(?:(\*)|:([1-9][0-9]{{0,3}}))?")


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable in an expression; `prefix` is the length in the modifier `:n`, `explodes` the modifier `*`."""

    name: str
    explodes: bool = False
    prefix: int | None = None


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression `{…}`; `sign` is its operator, empty for simple expansion."""

    text: str
    sign: str
    variables: tuple[Variable, ...]


Part: TypeAlias = str | Expression


def is_uri(text: str) -> bool:
    """True if the text is an absolute URI of at most 2048 ASCII characters with at most one `#`."""
    return len(text) <= MAX_URL_LENGTH and _URI.fullmatch(text) is not None and text.count("#") <= 1


def parse_parts(template: str) -> tuple[Part, ...]:
    """Return the literals, percent-encoded as in a URI, and the expressions, in order.

    Raises:
        ResourceValidationError: the text is not a URI template.
    """
    if len(template) > MAX_URL_LENGTH:
        raise refuse(f"a URI template has at most {MAX_URL_LENGTH} characters")
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
