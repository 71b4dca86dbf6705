"""The closed list of filters. A filter that builds a text or a list charges the budget first."""

import base64
import binascii
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias
from urllib.parse import quote_plus, unquote_plus

from gateway.definitions.json_access import as_list
from gateway.definitions.templates.liquid.arrays import ARRAY_FILTERS
from gateway.definitions.templates.liquid.budget import RenderingBudget
from gateway.definitions.templates.liquid.numbers import NUMBER_FILTERS, whole
from gateway.definitions.templates.liquid.values import Nothing, are_equal, count, to_json, write_out
from gateway.errors import TemplateFailed

Run: TypeAlias = Callable[[RenderingBudget, object, tuple[object, ...]], object]

_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"})


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter and its number of arguments."""

    run: Run
    least: int = 0
    most: int = 0

    @property
    def takes(self) -> str:
        """Number of arguments in words, for messages."""
        if self.most == 0:
            return "no argument"
        if self.least == self.most:
            return f"{self.most} argument{'s' if self.most > 1 else ''}"
        return f"{self.least} to {self.most} arguments"


def _text(budget: RenderingBudget, value: object, factor: int = 1) -> str:
    """Return the value as text; the budget is charged for `factor` times its length."""
    text = write_out(value, budget)
    budget.check_text(len(text) * factor)
    return text


def _mapped(change: Callable[[str], str], factor: int = 1) -> Run:
    def run(budget: RenderingBudget, value: object, _: tuple[object, ...]) -> object:
        return change(_text(budget, value, factor))

    return run


def _append(budget: RenderingBudget, value: object, arguments: tuple[object, ...]) -> object:
    left, right = write_out(value, budget), write_out(arguments[0], budget)
    budget.check_text(len(left) + len(right))
    return left + right


def _prepend(budget: RenderingBudget, value: object, arguments: tuple[object, ...]) -> object:
    return _append(budget, arguments[0], (value,))


def _replaced(*, most: int, removes: bool = False) -> Run:
    def run(budget: RenderingBudget, value: object, arguments: tuple[object, ...]) -> object:
        text, old = _text(budget, value), write_out(arguments[0], budget)
        new = "" if removes else write_out(arguments[1], budget)
        if not old:
            return text
        budget.spend_on(len(text))
        times = text.count(old) if most < 0 else min(most, text.count(old))
        budget.check_text(len(text) + times * max(0, len(new) - len(old)))
        return text.replace(old, new, most)

    return run


def _truncate(budget: RenderingBudget, value: object, arguments: tuple[object, ...]) -> object:
    text = _text(budget, value)
    length = whole(arguments[0]) if arguments else 50
    ending = write_out(arguments[1], budget) if len(arguments) > 1 else "…"
    if len(text) <= length:
        return text
    return text[: max(0, length - len(ending))] + ending


def _truncate_words(budget: RenderingBudget, value: object, arguments: tuple[object, ...]) -> object:
    text = _text(budget, value)
    most = max(1, whole(arguments[0]) if arguments else 15)
    ending = write_out(arguments[1], budget) if len(arguments) > 1 else "…"
    words = text.split(maxsplit=min(most, len(text)))
    return text if len(words) <= most else " ".join(words[:most]) + ending


def _slice(budget: RenderingBudget, value: object, arguments: tuple[object, ...]) -> object:
    start = whole(arguments[0])
    length = max(0, whole(arguments[1])) if len(arguments) > 1 else 1
    elements = as_list(value)
    sliced = _text(budget, value) if elements is None else elements
    first = start if start >= 0 else start + len(sliced)
    budget.check_items(max(0, min(length, len(sliced) - first)) if not isinstance(sliced, str) else 0)
    return sliced[first : first + length] if first >= 0 else sliced[:0]


def _split(budget: RenderingBudget, value: object, arguments: tuple[object, ...]) -> object:
    text, separator = _text(budget, value), write_out(arguments[0], budget)
    if not text:
        return []
    budget.check_items(len(text) if not separator else text.count(separator) + 1)
    return list(text) if not separator else text.split(separator)


def _decode(budget: RenderingBudget, value: object, _: tuple[object, ...]) -> object:
    try:
        return base64.b64decode(_text(budget, value), validate=True).decode()
    except (binascii.Error, ValueError):
        raise TemplateFailed("'base64_decode' got something that is not text in base64") from None


def _default(budget: RenderingBudget, value: object, arguments: tuple[object, ...]) -> object:
    is_missing = value is None or value is False or are_equal(value, Nothing.EMPTY, budget)
    return arguments[0] if is_missing else value


def _size(_: RenderingBudget, value: object, __: tuple[object, ...]) -> object:
    return count(value) or 0


def _json(budget: RenderingBudget, value: object, _: tuple[object, ...]) -> object:
    return to_json(value, budget)


_TEXT_FILTERS: Mapping[str, Filter] = {
    "append": Filter(_append, 1, 1),
    "base64_decode": Filter(_decode),
    "base64_encode": Filter(_mapped(lambda text: base64.b64encode(text.encode()).decode(), 6)),
    "capitalize": Filter(_mapped(str.capitalize, 3)),
    "default": Filter(_default, 1, 1),
    "downcase": Filter(_mapped(str.lower, 3)),
    "escape": Filter(_mapped(lambda text: text.translate(_ESCAPES), 6)),
    "json": Filter(_json),
    "lstrip": Filter(_mapped(str.lstrip)),
    "prepend": Filter(_prepend, 1, 1),
    "remove": Filter(_replaced(most=-1, removes=True), 1, 1),
    "remove_first": Filter(_replaced(most=1, removes=True), 1, 1),
    "replace": Filter(_replaced(most=-1), 2, 2),
    "replace_first": Filter(_replaced(most=1), 2, 2),
    "rstrip": Filter(_mapped(str.rstrip)),
    "size": Filter(_size),
    "slice": Filter(_slice, 1, 2),
    "split": Filter(_split, 1, 1),
    "strip": Filter(_mapped(str.strip)),
    "strip_newlines": Filter(_mapped(lambda text: text.replace("\r", "").replace("\n", ""))),
    "truncate": Filter(_truncate, 0, 2),
    "truncatewords": Filter(_truncate_words, 0, 2),
    "upcase": Filter(_mapped(str.upper, 3)),
    "url_decode": Filter(_mapped(unquote_plus)),
    "url_encode": Filter(_mapped(quote_plus, 12)),
}

FILTERS: Mapping[str, Filter] = MappingProxyType(
    dict(_TEXT_FILTERS)
    | {name: Filter(run, least, most) for name, (run, least, most) in NUMBER_FILTERS.items()}
    | {name: Filter(run, least, most) for name, (run, least, most) in ARRAY_FILTERS.items()}
)
"""All filters by name."""
