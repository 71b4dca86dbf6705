"""Examples of a document: their locations, and the cost of checking one.

An example belongs to a parameter, a media type, or a schema. A JSON text in place of a value is parsed as the value.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import orjson

from gateway.domain.json_access import Object, as_list, as_object
from gateway.openapi.document.json_access import NOTHING, Unusable, list_at, object_at
from gateway.openapi.document.references import References
from gateway.openapi.schema.keywords import CHILD, IN_PLACE, IN_PLACE_LISTS
from gateway.openapi.schema.limits import (
    MAX_AT_ONE_PLACE,
    MAX_EXAMPLE_BYTES,
    MAX_LISTED_EXAMPLE_BYTES,
    MAX_LISTED_EXAMPLES,
    MAX_VISITS,
    MAX_WHOLE_EXAMPLE_BYTES,
)

Path = tuple[str | int, ...]
_Visits = Iterable[tuple[Any, Any]]


_MAPS = ("properties", "patternProperties", "dependentSchemas")
_LISTS = (*IN_PLACE_LISTS, "prefixItems")
_SINGLE = (*CHILD, *IN_PLACE, "items")
_NAMES = ("example", "x-example")
_VALUES = ("value", "dataValue")
_VALUE_KEYWORDS = frozenset(("enum", "const"))
_PLAIN = frozenset(("type", "title", "description", "default", "deprecated", "examples"))
_STRUCTURED = frozenset((*_MAPS, *_LISTS, *_SINGLE, "$ref"))


def schema_examples(node: Object) -> Sequence[object]:
    """Return the examples in a schema: `example`, also as an extension, and `examples` if it is a list; at most 20."""
    found = [node[key] for key in _NAMES if key in node]
    return [*found, *list_at(node, "examples")][:MAX_AT_ONE_PLACE]


def holder_examples(node: Object, references: References) -> Sequence[object]:
    """Return the examples of a Parameter or Media Type Object; at most 20."""
    found = [node[key] for key in _NAMES if key in node]
    for entry in object_at(node, "examples").values():
        try:
            target = references.follow(entry, "an example") if as_object(entry) is not None else NOTHING
        except Unusable:
            continue
        found += [target[key] for key in _VALUES if key in target]
    return found[:MAX_AT_ONE_PLACE]


def read_text(value: object) -> object:
    """Return the parsed value of a JSON text; other values, and strings that are not JSON, unchanged."""
    if not isinstance(value, str) or len(value) > MAX_EXAMPLE_BYTES:
        return value
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        return value


def size_of(value: object) -> int | None:
    """Return the bytes of a value as JSON; None if it cannot be encoded."""
    try:
        return len(orjson.dumps(value))
    except TypeError:  # an integer beyond 64 bits, or an unpaired surrogate
        return None


def is_plain(node: Object) -> bool:
    """True if the schema restricts only the type of a value."""
    return node.keys() <= _PLAIN


def is_leaf(node: Object) -> bool:
    """True if the schema contains no other schema."""
    return _STRUCTURED.isdisjoint(node)


def nodes_with(keyword: str, schema: object) -> Sequence[tuple[Path, dict[str, object]]]:
    """Return the schemas with the keyword, inner ones first, each with its path in the translated schema."""
    found: list[tuple[Path, dict[str, object]]] = []
    waiting: list[tuple[Path, object]] = [((), schema)]
    while waiting:
        path, part = waiting.pop()
        node = as_object(part)
        if node is None:
            continue
        if keyword in node:
            found.append((path, cast("dict[str, object]", node)))
        waiting += _inner(path, node)
    return found[::-1]


def listed_examples(values: Sequence[object], node: Object, *, is_whole: bool) -> Sequence[object]:
    """Return the examples to list: at most three small ones that add information to the schema."""
    if not _VALUE_KEYWORDS.isdisjoint(node) or node.get("type") == "boolean":
        return ()
    max_size = MAX_WHOLE_EXAMPLE_BYTES if is_whole else MAX_LISTED_EXAMPLE_BYTES
    found: list[object] = []
    for value in values:
        size = size_of(value)
        is_new = value not in found and value is not None and ("default" not in node or value != node["default"])
        if is_new and size is not None and size <= max_size and len(found) < MAX_LISTED_EXAMPLES:
            found.append(value)
    return found


def _inner(path: Path, node: Object) -> Iterator[tuple[Path, object]]:
    for keyword, value in node.items():
        if keyword in _SINGLE:
            yield (*path, keyword), value
        elif keyword in _MAPS:
            yield from (((*path, keyword, name), part) for name, part in (as_object(value) or NOTHING).items())
        elif keyword in _LISTS:
            yield from (((*path, keyword, number), part) for number, part in enumerate(as_list(value) or ()))


def count_visits(schema: object, value: object, definitions: Mapping[str, object]) -> tuple[int, set[str]]:
    """Return an upper bound on the visits of a check of the value, and the definitions that it reaches.

    Counting stops above `MAX_VISITS`. All branches are counted, including those that a check would skip, and each
    round through a cycle of references.
    """
    reached: set[str] = set()
    waiting: list[tuple[Any, Any]] = [(schema, value)]
    count = 0
    while waiting and count <= MAX_VISITS:
        part, own = waiting.pop()
        count += 1
        if not isinstance(part, dict):
            continue
        node = cast("dict[str, Any]", part)
        for keyword in node:
            if keyword == "$ref":
                reached.add(name := node[keyword].removeprefix("#/$defs/"))
                waiting.append((definitions.get(name), own))
            elif keyword in _VISITED:
                waiting += _VISITED[keyword](node[keyword], own)
    return count, reached


def _same(parts: Iterable[Any], own: Any) -> _Visits:
    return [(part, own) for part in parts]


def _named(parts: dict[str, Any], own: Any) -> _Visits:
    members = cast("dict[str, Any]", own) if isinstance(own, dict) else {}
    return [(parts[name], member) for name, member in members.items() if name in parts]


def _members(part: Any, own: Any) -> _Visits:
    members: Iterable[Any] = cast("dict[str, Any]", own).values() if isinstance(own, dict) else as_list(own) or ()
    return [(part, member) for member in members]


_VISITED: Mapping[str, Callable[[Any, Any], _Visits]] = {
    **dict.fromkeys(IN_PLACE_LISTS, _same),
    **dict.fromkeys(IN_PLACE, lambda part, own: ((part, own),)),
    **dict.fromkeys((*CHILD, "items"), _members),
    "properties": _named,
    "dependentSchemas": lambda parts, own: _same(parts.values(), own),
    "patternProperties": lambda parts, own: [pair for part in parts.values() for pair in _members(part, own)],
    "prefixItems": lambda parts, own: list(zip(parts, as_list(own) or (), strict=False)),
}
"""The schemas that a keyword applies, each with the value that it applies to."""
