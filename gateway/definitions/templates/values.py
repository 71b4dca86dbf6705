"""Values in templates: output, comparison and member access. A value is JSON, or one of the constants `empty` and
`blank`.

Templates cannot access attributes of Python objects. Each step of a path is a dictionary key, a list index, or `size`,
`first` or `last`.
"""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import cast

import msgspec

from gateway.definitions.templates.budget import RenderingBudget
from gateway.definitions.templates.limits import MAX_COMPARISON_LENGTH, MAX_RENDERED_TEXT_LENGTH
from gateway.domain.json_access import as_list
from gateway.errors import TemplateFailed

_NODES_PER_STEP = 4
_CONTAINERS = (dict, list, tuple)
_PLACES = {"first": 0, "last": -1}


class EmptyConstant(Enum):
    """The constants `empty` and `blank`, for comparisons; they render as an empty string."""

    EMPTY = "empty"
    BLANK = "blank"


def to_text(value: object, budget: RenderingBudget) -> str:
    """Return the value as a string: empty for null, JSON for objects and arrays."""
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, EmptyConstant):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    return to_json(value, budget)


def to_json(value: object, budget: RenderingBudget) -> str:
    """Return the value as compact JSON.

    Raises:
        TemplateFailed: the value is too large, or is not JSON.
    """
    if isinstance(value, EmptyConstant):
        value = ""
    budget.check_text(measure(value, budget, MAX_RENDERED_TEXT_LENGTH))
    try:
        written = msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError):
        raise TemplateFailed("a value cannot be written as JSON") from None
    budget.check_text(len(written))
    return written


def measure(value: object, budget: RenderingBudget, limit: int) -> int:
    """Estimate the number of characters of a value as JSON; counting stops soon after `limit`.

    It runs before the JSON is built, because a value may contain the same long string ten thousand times.
    """
    size = seen = 0
    left: list[object] = [value]
    while left and size <= limit:
        item = left.pop()
        seen += 1
        if isinstance(item, str):
            size += len(item) + 2
        elif isinstance(item, dict):
            members = cast("Mapping[object, object]", item)
            size += 2 + sum(len(name) + 4 if isinstance(name, str) else 4 for name in members)
            left.extend(members.values())
        elif isinstance(item, list | tuple):
            elements = cast("Sequence[object]", item)
            size += 2 + len(elements)
            left.extend(elements)
        else:
            size += 4
    budget.spend(1 + seen // _NODES_PER_STEP)
    return size


def lookup_member(value: object, key: object) -> object:
    """Return the member under a key, the element at an index, or the `size`; null if there is none."""
    if isinstance(value, dict):
        members = cast("Mapping[object, object]", value)
        return members.get(key, len(members) if key == "size" else None) if isinstance(key, str) else None
    if key == "size":
        return count(value)
    elements = as_list(value)
    index = _PLACES.get(key) if isinstance(key, str) else key
    if elements is None or not isinstance(index, int) or isinstance(index, bool):
        return None
    return elements[index] if -len(elements) <= index < len(elements) else None


def count(value: object) -> int | None:
    """Return the number of characters, elements or members of a value; None if it has no size."""
    if isinstance(value, dict):
        return len(cast("Mapping[object, object]", value))
    items = as_list(value)
    if items is not None:
        return len(items)
    return len(value) if isinstance(value, str) else None


def are_equal(left: object, right: object, budget: RenderingBudget) -> bool:
    """True if two values are equal.

    Raises:
        TemplateFailed: both values are arrays or objects; their comparison could take unbounded time.
    """
    if isinstance(right, EmptyConstant):
        return _is_nothing(left, right, budget)
    if isinstance(left, EmptyConstant):
        return _is_nothing(right, left, budget)
    if isinstance(left, _CONTAINERS) and isinstance(right, _CONTAINERS):
        raise TemplateFailed("arrays and objects can only be compared with 'empty'")
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, str) and isinstance(right, str):
        budget.spend_on(min(len(left), len(right)))
    return left == right


def is_less(left: object, right: object, budget: RenderingBudget) -> bool:
    """True if `left` comes before `right`: two numbers or two strings; False if one is null.

    Raises:
        TemplateFailed: the values have no order.
    """
    if left is None or right is None:
        return False
    if isinstance(left, str) and isinstance(right, str):
        budget.spend_on(min(len(left), len(right)))
        return left < right
    if (
        isinstance(left, int | float)
        and isinstance(right, int | float)
        and not isinstance(left, bool)
        and not isinstance(right, bool)
    ):
        return left < right
    raise TemplateFailed("only two numbers or two strings can be ordered")


def contains(container: object, wanted: object, budget: RenderingBudget) -> bool:
    """True if a string contains this substring, an array this scalar, or an object this key."""
    if isinstance(container, str):
        part = to_text(wanted, budget)
        spend_on_search(container, part, budget)
        return part in container
    if isinstance(container, dict):
        return isinstance(wanted, str) and wanted in container
    items = as_list(container)
    return items is not None and any(_same_scalar(item, wanted, budget) for item in items)


def spend_on_search(text: str, part: str, budget: RenderingBudget) -> None:
    """Charge a search for `part`. In repetitive strings, CPython compares about 100 characters at each position."""
    budget.spend_on(len(text), min(len(part), MAX_COMPARISON_LENGTH))


def _same_scalar(item: object, wanted: object, budget: RenderingBudget) -> bool:
    budget.spend()
    return not isinstance(item, _CONTAINERS) and are_equal(item, wanted, budget)


def _is_nothing(value: object, kind: EmptyConstant, budget: RenderingBudget) -> bool:
    if isinstance(value, str) and kind is EmptyConstant.BLANK:
        budget.spend_on(len(value), 3)  # white space beyond ASCII is looked up character by character
        return not value.strip()
    size = count(value)
    if size is not None:
        return size == 0
    return kind is EmptyConstant.BLANK and (value is None or value is False)
