"""The closed list of filters over strings and numbers. A filter charges the budget before it builds a string.

Integers outside -2^63 to 2^64-1 and infinite floats are refused, so numbers stay bounded.
"""

import base64
import binascii
import html
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import quote_plus, unquote_plus

from gateway.definitions.limits import MAX_INTEGER, MIN_INTEGER
from gateway.definitions.templates.budget import RenderingBudget
from gateway.definitions.templates.limits import MAX_READ_NUMBER_LENGTH, MAX_RENDERED_TEXT_LENGTH, MAX_ROUND_DIGITS
from gateway.definitions.templates.values import (
    EmptyConstant,
    are_equal,
    count,
    lookup_member,
    spend_on_search,
    to_json,
    to_text,
)
from gateway.domain.json_access import as_list
from gateway.errors import TemplateFailed

Number: TypeAlias = int | float
Run: TypeAlias = Callable[[RenderingBudget, object, tuple[object, ...]], object]

_ITEMS_PER_STEP = 64
_COST_OF_WORDS = 8


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter and its number of arguments."""

    run: Run
    min_arguments: int = 0
    max_arguments: int = 0

    @property
    def takes(self) -> str:
        """Number of arguments in words, for messages."""
        if self.max_arguments == 0:
            return "no argument"
        if self.min_arguments == self.max_arguments:
            return f"{self.max_arguments} argument{'s' if self.max_arguments > 1 else ''}"
        return f"{self.min_arguments} to {self.max_arguments} arguments"


def _text(budget: RenderingBudget, value: object) -> str:
    text = to_text(value, budget)
    budget.check_text(len(text))
    return text


def _mapped(change: Callable[[str], str], *, growth: int = 1, cost: int = 1) -> Run:
    """Return a filter whose text is at most `growth` times as long; `cost` is in steps per 1,024 characters."""

    def run(budget: RenderingBudget, value: object, _: tuple[object, ...]) -> object:
        text = to_text(value, budget)
        budget.check_text(len(text) * growth)
        budget.spend_on(len(text), cost)
        return change(text)

    return run


def _append(budget: RenderingBudget, value: object, arguments: tuple[object, ...]) -> object:
    left, right = to_text(value, budget), to_text(arguments[0], budget)
    budget.check_text(len(left) + len(right))
    return left + right


def _prepend(budget: RenderingBudget, value: object, arguments: tuple[object, ...]) -> object:
    return _append(budget, arguments[0], (value,))


def _replaced(*, limit: int = -1, removes: bool = False) -> Run:
    def run(budget: RenderingBudget, value: object, arguments: tuple[object, ...]) -> object:
        text, old = _text(budget, value), to_text(arguments[0], budget)
        new = "" if removes else to_text(arguments[1], budget)
        if not old:
            return text
        spend_on_search(text, old, budget)
        times = text.count(old) if limit < 0 else min(limit, text.count(old))
        spend_on_search(text, old, budget)
        budget.check_text(len(text) + times * max(0, len(new) - len(old)))
        return text.replace(old, new, limit)

    return run


def _truncate(budget: RenderingBudget, value: object, arguments: tuple[object, ...]) -> object:
    text = _text(budget, value)
    length = _whole(arguments[0]) if arguments else 50
    ending = _text(budget, arguments[1]) if len(arguments) > 1 else "…"
    if len(text) <= length:
        return text
    return text[: max(0, length - len(ending))] + ending


def _truncate_words(budget: RenderingBudget, value: object, arguments: tuple[object, ...]) -> object:
    text = _text(budget, value)
    max_arguments = max(1, _whole(arguments[0]) if arguments else 15)
    ending = _text(budget, arguments[1]) if len(arguments) > 1 else "…"
    budget.spend_on(len(text), _COST_OF_WORDS)
    words = text.split(maxsplit=min(max_arguments, len(text)))
    return text if len(words) <= max_arguments else " ".join(words[:max_arguments]) + ending


def _slice(budget: RenderingBudget, value: object, arguments: tuple[object, ...]) -> object:
    start = _whole(arguments[0])
    length = max(0, _whole(arguments[1])) if len(arguments) > 1 else 1
    elements = as_list(value)
    sliced = _text(budget, value) if elements is None else elements
    first = start if start >= 0 else start + len(sliced)
    budget.spend(1 + min(length, len(sliced)) // _ITEMS_PER_STEP)
    return sliced[first : first + length] if first >= 0 else sliced[:0]


def _join(budget: RenderingBudget, value: object, arguments: tuple[object, ...]) -> object:
    separator = to_text(arguments[0], budget) if arguments else " "
    elements = as_list(value)
    if elements is None:
        elements = [] if value is None else [value]
    parts: list[str] = []
    length = 0
    for element in elements:
        budget.spend()
        parts.append(to_text(element, budget))
        length += len(parts[-1]) + len(separator)
        if length > MAX_RENDERED_TEXT_LENGTH:
            break
    budget.check_text(length)
    return separator.join(parts)


def _decode(budget: RenderingBudget, value: object, _: tuple[object, ...]) -> object:
    try:
        return base64.b64decode(_text(budget, value), validate=True).decode()
    except (binascii.Error, ValueError):
        raise TemplateFailed("the input of 'base64_decode' is not base64 of UTF-8 text") from None


def _default(budget: RenderingBudget, value: object, arguments: tuple[object, ...]) -> object:
    is_missing = value is None or value is False or are_equal(value, EmptyConstant.EMPTY, budget)
    return arguments[0] if is_missing else value


def _number(value: object) -> Number:
    """Return the value as a number. Text is parsed; text that is not a number, and any other value, counts as 0."""
    if isinstance(value, str):
        return _read_number(value)
    return _bounded(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0


def _whole(value: object) -> int:
    """Return the value as a whole number, rounded towards zero."""
    return int(_number(value))


def _read_number(text: str) -> Number:
    if len(text) > MAX_READ_NUMBER_LENGTH:
        return 0
    for read in (int, float):
        try:
            return _bounded(read(text))
        except ValueError:
            continue
    return 0


def _bounded(value: Number) -> Number:
    is_usable = MIN_INTEGER <= value <= MAX_INTEGER if isinstance(value, int) else math.isfinite(value)
    if not is_usable:
        raise TemplateFailed("a number is too large")
    return value


def _computed(compute: Callable[..., Number], min_arguments: int = 0, max_arguments: int = 0) -> Filter:
    """Return a filter that computes a number of the value and the arguments, as numbers."""

    def run(_: RenderingBudget, value: object, arguments: tuple[object, ...]) -> object:
        try:
            return _bounded(compute(_number(value), *map(_number, arguments)))
        except ZeroDivisionError:
            raise TemplateFailed("division by 0") from None

    return Filter(run, min_arguments, max_arguments)


def _absolute(value: Number) -> Number:
    return abs(value)


def _divide(left: Number, right: Number) -> Number:
    return left // right if isinstance(left, int) and isinstance(right, int) else left / right


def _round(value: Number, digits: Number = 0) -> Number:
    kept = max(0, min(MAX_ROUND_DIGITS, int(digits)))
    return round(value, kept) if kept else round(value)


FILTERS: Mapping[str, Filter] = {
    "abs": _computed(_absolute),
    "append": Filter(_append, 1, 1),
    "at_least": _computed(max, 1, 1),
    "at_most": _computed(min, 1, 1),
    "base64_decode": Filter(_decode),
    "base64_encode": Filter(_mapped(lambda text: base64.b64encode(text.encode()).decode(), growth=6, cost=12)),
    "capitalize": Filter(_mapped(str.capitalize, growth=3, cost=20)),
    "ceil": _computed(math.ceil),
    "default": Filter(_default, 1, 1),
    "divided_by": _computed(_divide, 1, 1),
    "downcase": Filter(_mapped(str.lower, growth=3, cost=20)),
    "escape": Filter(_mapped(lambda text: html.escape(text).replace("&#x27;", "&#39;"), growth=6, cost=100)),
    "first": Filter(lambda _, value, __: lookup_member(value, "first")),
    "floor": _computed(math.floor),
    "join": Filter(_join, 0, 1),
    "json": Filter(lambda budget, value, _: to_json(value, budget)),
    "last": Filter(lambda _, value, __: lookup_member(value, "last")),
    "lstrip": Filter(_mapped(str.lstrip, cost=2)),
    "minus": _computed(operator.sub, 1, 1),
    "modulo": _computed(operator.mod, 1, 1),
    "plus": _computed(operator.add, 1, 1),
    "prepend": Filter(_prepend, 1, 1),
    "remove": Filter(_replaced(removes=True), 1, 1),
    "remove_first": Filter(_replaced(limit=1, removes=True), 1, 1),
    "replace": Filter(_replaced(), 2, 2),
    "replace_first": Filter(_replaced(limit=1), 2, 2),
    "round": _computed(_round, 0, 1),
    "rstrip": Filter(_mapped(str.rstrip, cost=2)),
    "size": Filter(lambda _, value, __: count(value) or 0),
    "slice": Filter(_slice, 1, 2),
    "strip": Filter(_mapped(str.strip, cost=2)),
    "strip_newlines": Filter(_mapped(lambda text: text.replace("\r", "").replace("\n", ""))),
    "times": _computed(operator.mul, 1, 1),
    "truncate": Filter(_truncate, 0, 2),
    "truncatewords": Filter(_truncate_words, 0, 2),
    "upcase": Filter(_mapped(str.upper, growth=3, cost=20)),
    "url_decode": Filter(_mapped(unquote_plus, cost=1000)),
    "url_encode": Filter(_mapped(quote_plus, growth=12, cost=300)),
}
"""All filters by name; each `cost` is the measured worst case in microseconds per 1,024 characters."""
