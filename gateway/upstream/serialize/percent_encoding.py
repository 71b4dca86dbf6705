"""Conversion of values to text, and percent-encoding for URLs and forms (RFC 3986, RFC 6570).

The functions raise `Unwritable` for a value that cannot be converted.
"""

import json
import math
import re
from collections.abc import Callable
from typing import Self, TypeGuard, TypeVar
from urllib.parse import quote, quote_plus

_TRIPLE = re.compile(r"(%[0-9A-Fa-f]{2})")
_MAX_WITHOUT_EXPONENT = 1e21


_Written = TypeVar("_Written")


class Unwritable(Exception):
    """A value cannot be serialized at its position; the message states the reason and never contains the value."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.path: tuple[str, ...] = ()
        """The names and indexes that lead to the value within the argument."""

    def within(self, step: str | int) -> Self:
        """Return the error with one more step in front of its path."""
        self.path = (str(step), *self.path)
        return self


def write_at(step: str | int, write: Callable[..., _Written], *values: object) -> _Written:
    """Return what the writer returns for a member of a value; the path of its error begins with the member.

    Raises:
        Unwritable: the writer raised it.
    """
    try:
        return write(*values)
    except Unwritable as error:
        raise error.within(step) from None


def is_list(value: object) -> TypeGuard[list[object]]:
    """True if an argument is a JSON array."""
    return isinstance(value, list)


def is_object(value: object) -> TypeGuard[dict[str, object]]:
    """True if an argument is a JSON object."""
    return isinstance(value, dict)


def to_text(value: object) -> str:
    """Return the text of one value: strings unchanged, integral numbers without a fraction, other values as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _number(value)
    return to_json(value)


def to_json(value: object, *, ascii_only: bool = False) -> str:
    """Return compact JSON; integers keep every digit."""
    try:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=ascii_only, allow_nan=False)
    except (ValueError, TypeError, RecursionError):
        raise Unwritable("it cannot be written as JSON") from None


def to_bytes(text: str, charset: str = "utf-8") -> bytes:
    """Encode text as bytes; a lone surrogate is refused."""
    try:
        return text.encode(charset)
    except UnicodeEncodeError:
        raise Unwritable(f"it has characters that cannot be written in {charset}") from None


def percent(text: str) -> str:
    """Percent-encode everything but RFC 3986's unreserved characters."""
    if text.isascii() and text.isalnum():
        return text
    try:
        return quote(text, safe="")
    except UnicodeEncodeError:
        raise Unwritable("it has characters that are not valid Unicode text") from None


def plus(text: str) -> str:
    """Encode for an HTML form: as `percent`, but with a blank as `+`."""
    try:
        return quote_plus(text, safe="")
    except UnicodeEncodeError:
        raise Unwritable("it has characters that are not valid Unicode text") from None


def reserved_query(text: str) -> str:
    """Encode for `allowReserved` in a query or form: keep reserved characters and percent-triples, except `& + [ ] #`.

    The exceptions are left to the sender: `[ ] #` are invalid in a query, and `& +` are special in forms.
    """
    return _keep_triples(text, ":/?@!$'()*,;=")


def reserved_path(text: str) -> str:
    """Encode for `allowReserved` in a path: as in a query, but keep `& +`, and encode `/ ?`, which end the value."""
    return _keep_triples(text, ":@!$&'()*+,;=")


def reserved_cookie(text: str) -> str:
    """Encode for `allowReserved` in a cookie: keep reserved characters, except `,` and `;`."""
    return _keep_triples(text, ":/?#[]@!$&'()*+=")


def _keep_triples(text: str, safe: str) -> str:
    try:
        return "".join(part if index % 2 else quote(part, safe=safe) for index, part in enumerate(_TRIPLE.split(text)))
    except UnicodeEncodeError:
        raise Unwritable("it has characters that are not valid Unicode text") from None


def _number(value: float) -> str:
    if not math.isfinite(value):
        raise Unwritable("it is not a finite number")
    if value.is_integer() and abs(value) < _MAX_WITHOUT_EXPONENT:
        return str(int(value))
    mantissa, _, exponent = repr(value).partition("e")
    return f"{mantissa}e{int(exponent)}" if exponent else mantissa
