"""Filters over arrays. Work on all elements is charged to the budget."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from gateway.definitions.json_access import as_list
from gateway.definitions.templates.liquid.budget import RenderingBudget
from gateway.definitions.templates.liquid.numbers import number
from gateway.definitions.templates.liquid.values import are_equal, is_true, look_into, to_json, write_out

Run: TypeAlias = Callable[[RenderingBudget, object, tuple[object, ...]], object]


def _items(budget: RenderingBudget, value: object) -> list[object]:
    """Return the elements of an array; null counts as an empty array, any other value as an array of one element."""
    elements = as_list(value)
    if elements is None:
        return [] if value is None else [value]
    budget.check_items(len(elements))
    return list(elements)


def _first(_: RenderingBudget, value: object, __: tuple[object, ...]) -> object:
    return look_into(value, "first")


def _last(_: RenderingBudget, value: object, __: tuple[object, ...]) -> object:
    return look_into(value, "last")


def _join(budget: RenderingBudget, value: object, arguments: tuple[object, ...]) -> object:
    separator = write_out(arguments[0], budget) if arguments else " "
    parts: list[str] = []
    length = 0
    for item in _items(budget, value):
        parts.append(write_out(item, budget))
        length += len(parts[-1]) + len(separator)
        budget.spend()
        if length > budget.limits.text:
            break
    budget.check_text(length)
    return separator.join(parts)


def _reverse(budget: RenderingBudget, value: object, _: tuple[object, ...]) -> object:
    return _items(budget, value)[::-1]


def _concat(budget: RenderingBudget, value: object, arguments: tuple[object, ...]) -> object:
    left, right = _items(budget, value), _items(budget, arguments[0])
    budget.check_items(len(left) + len(right))
    return left + right


def _compact(budget: RenderingBudget, value: object, _: tuple[object, ...]) -> object:
    return [item for item in _items(budget, value) if item is not None]


def _map(budget: RenderingBudget, value: object, arguments: tuple[object, ...]) -> object:
    return [look_into(item, name) for name in arguments for item in _items(budget, value)]


def _where(budget: RenderingBudget, value: object, arguments: tuple[object, ...]) -> object:
    kept: list[object] = []
    name, *wanted = arguments
    for item in _items(budget, value):
        budget.spend()
        found = look_into(item, name)
        if are_equal(found, wanted[0], budget) if wanted else is_true(found):
            kept.append(item)
    return kept


def _uniq(budget: RenderingBudget, value: object, _: tuple[object, ...]) -> object:
    seen: dict[str, object] = {}
    for item in _items(budget, value):
        seen.setdefault(to_json(item, budget), item)
    return list(seen.values())


def _sort(budget: RenderingBudget, value: object, arguments: tuple[object, ...]) -> object:
    items = _items(budget, value)
    keys = [look_into(item, name) for name in arguments for item in items] or items
    ranked = [(_rank(key, budget), index) for index, key in enumerate(keys)]
    size = sum(len(rank[2]) for rank, _ in ranked)
    budget.spend(len(items) + size * len(items).bit_length() // 1024)
    return [items[index] for _, index in sorted(ranked)]


def _rank(key: object, budget: RenderingBudget) -> tuple[int, float, str]:
    """Return the sort key: numbers first, then text, null last."""
    if key is None:
        return (2, 0.0, "")
    if isinstance(key, int | float) and not isinstance(key, bool):
        return (0, float(number(key)), "")
    return (1, 0.0, write_out(key, budget))


def _sum(budget: RenderingBudget, value: object, arguments: tuple[object, ...]) -> object:
    items = _items(budget, value)
    added = [look_into(item, name) for name in arguments for item in items] if arguments else items
    return number(sum(map(number, added)))


ARRAY_FILTERS: Mapping[str, tuple[Run, int, int]] = {
    "compact": (_compact, 0, 0),
    "concat": (_concat, 1, 1),
    "first": (_first, 0, 0),
    "join": (_join, 0, 1),
    "last": (_last, 0, 0),
    "map": (_map, 1, 1),
    "reverse": (_reverse, 0, 0),
    "sort": (_sort, 0, 1),
    "sum": (_sum, 0, 1),
    "uniq": (_uniq, 0, 0),
    "where": (_where, 1, 2),
}
"""Per filter: its function, and its minimum and maximum number of arguments."""
