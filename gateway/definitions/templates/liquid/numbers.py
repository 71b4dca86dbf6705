"""Filters over numbers. Integers outside -2^63 to 2^64-1 and infinite floats are refused, so results stay bounded."""

import math
from collections.abc import Callable, Mapping
from typing import TypeAlias

from gateway.definitions.templates.liquid.budget import RenderingBudget
from gateway.errors import TemplateFailed

_SMALLEST = -(2**63)
_LARGEST = 2**64 - 1
_LONGEST = 40
_MOST_DIGITS = 20

Number: TypeAlias = int | float
Run: TypeAlias = Callable[[RenderingBudget, object, tuple[object, ...]], object]


def number(value: object) -> Number:
    """Return the value as a number. Text is parsed; text that is no number, and any other value, counts as 0.

    Raises:
        TemplateFailed: the number is out of range.
    """
    if isinstance(value, bool) or value is None:
        return 0
    if isinstance(value, str):
        return _read(value)
    return _bounded(value) if isinstance(value, int | float) else 0


def whole(value: object) -> int:
    """Return the value as a whole number, rounded towards zero.

    Raises:
        TemplateFailed: the number is out of range.
    """
    return int(number(value))


def _read(text: str) -> Number:
    if len(text) > _LONGEST:
        return 0
    try:
        return _bounded(int(text))
    except ValueError:
        pass
    try:
        return _bounded(float(text))
    except ValueError:
        return 0


def _bounded(value: Number) -> Number:
    is_usable = _SMALLEST <= value <= _LARGEST if isinstance(value, int) else math.isfinite(value)
    if not is_usable:
        raise TemplateFailed("a number is too large")
    return value


def _one(change: Callable[[Number], Number]) -> Run:
    def run(_: RenderingBudget, value: object, __: tuple[object, ...]) -> object:
        return _bounded(change(number(value)))

    return run


def _two(change: Callable[[Number, Number], Number]) -> Run:
    def run(_: RenderingBudget, value: object, arguments: tuple[object, ...]) -> object:
        return _bounded(change(number(value), number(arguments[0])))

    return run


def _divide(left: Number, right: Number) -> Number:
    if right == 0:
        raise TemplateFailed("a number is divided by 0")
    return left // right if isinstance(left, int) and isinstance(right, int) else left / right


def _modulo(left: Number, right: Number) -> Number:
    if right == 0:
        raise TemplateFailed("a number is divided by 0")
    return left % right


def _round(_: RenderingBudget, value: object, arguments: tuple[object, ...]) -> object:
    digits = max(0, min(_MOST_DIGITS, whole(arguments[0]))) if arguments else 0
    return _bounded(round(number(value), digits) if digits else round(number(value)))


NUMBER_FILTERS: Mapping[str, tuple[Run, int, int]] = {
    "abs": (_one(abs), 0, 0),
    "at_least": (_two(max), 1, 1),
    "at_most": (_two(min), 1, 1),
    "ceil": (_one(math.ceil), 0, 0),
    "divided_by": (_two(_divide), 1, 1),
    "floor": (_one(math.floor), 0, 0),
    "minus": (_two(lambda left, right: left - right), 1, 1),
    "modulo": (_two(_modulo), 1, 1),
    "plus": (_two(lambda left, right: left + right), 1, 1),
    "round": (_round, 0, 1),
    "times": (_two(lambda left, right: left * right), 1, 1),
}
"""Per filter: its function, and its minimum and maximum number of arguments."""
