"""Patterns in the schemas of live sources that the gateway cannot check, for example because of look-around."""

from collections.abc import Collection, Mapping
from typing import cast

import orjson

from gateway.definitions.json_schema.tree import SchemaTree, TooLarge
from gateway.domain.json_access import as_list, as_object, tokens_of

_NAMED = "patternProperties"
_OTHERS = ("additionalProperties", "unevaluatedProperties")
"""Schemas of the properties that no pattern names: they would apply to the properties of a dropped pattern."""


def pattern_at(definition: Mapping[str, object], pointer: str) -> str | None:
    """Return the pattern at this place of a definition; None if there is none."""
    tokens = tokens_of(pointer) if pointer else []
    value: object = definition
    for token in tokens:
        members, items = as_object(value), as_list(value)
        if members is not None and token in members:
            value = members[token]
        elif items is not None and token.isdecimal() and int(token) < len(items):
            value = items[int(token)]
        else:
            return None
    if tokens[-1:] == ["pattern"]:
        return value if isinstance(value, str) else None
    return tokens[-1] if tokens[-2:-1] == [_NAMED] else None


def without_patterns(schema: object, patterns: Collection[str]) -> object:
    """Return a copy of the schema without these patterns, also where they name properties."""
    copy: object = orjson.loads(orjson.dumps(schema))
    try:
        nodes = SchemaTree(copy).nodes
    except TooLarge:
        return copy
    for node in nodes:
        members = cast("dict[str, object]", node.schema)
        if members.get("pattern") in patterns:
            del members["pattern"]
        named = as_object(members.get(_NAMED)) or {}
        if not named.keys().isdisjoint(patterns):
            members[_NAMED] = {name: part for name, part in named.items() if name not in patterns}
            for other in _OTHERS:
                members.pop(other, None)
    return copy
