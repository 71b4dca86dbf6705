"""A text that matches a pattern: the shortest repetitions, the first branches and the first characters."""

from collections.abc import Iterable
from functools import cache
from importlib import import_module
from typing import Any

codes: Any = import_module("re._constants")
parser: Any = import_module("re._parser")  # the standard library has no public parser of patterns
_CATEGORIES: dict[Any, str] = {codes.CATEGORY_DIGIT: "1", codes.CATEGORY_SPACE: " ", codes.CATEGORY_WORD: "a"}
_OTHERS = "a1-_ ."


@cache
def sample(pattern: str) -> str | None:
    """Return a text for the pattern, which need not match; None if the pattern has a construct that is not known."""
    try:
        return _text(parser.parse(pattern))
    except Exception:  # whatever a document calls a pattern
        return None


def _text(tokens: Iterable[Any]) -> str:
    return "".join(_one(code, argument) for code, argument in tokens)


def _one(code: Any, argument: Any) -> str:
    if code is codes.LITERAL:
        return chr(argument)
    if code is codes.NOT_LITERAL:
        return "a" if argument != ord("a") else "b"
    if code is codes.ANY:
        return "a"
    if code is codes.IN:
        return _of_class(argument)
    if code in {codes.MAX_REPEAT, codes.MIN_REPEAT}:
        least: int = argument[0]
        inner: Any = argument[2]
        return _text(inner) * max(least, 0)
    if code is codes.SUBPATTERN:
        return _text(argument[3])
    if code is codes.BRANCH:
        first: Any = argument[1][0]
        return _text(first)
    return ""


def _of_class(members: list[Any]) -> str:
    code, argument = members[0]
    if code is codes.NEGATE:
        excluded = {chr(value) for kind, value in members[1:] if kind is codes.LITERAL}
        return next((one for one in _OTHERS if one not in excluded), "a")
    if code is codes.RANGE:
        return chr(argument[0])
    return _CATEGORIES.get(argument, "a") if code is codes.CATEGORY else chr(argument)
