"""The names under `$defs` that a listed schema references."""

from collections.abc import Iterator
from typing import cast

from gateway.domain.json_access import Object

_CONTAINERS: frozenset[type] = frozenset((dict, list))


def referenced_names(value: object) -> Iterator[str]:
    """The names of the shared schemas that a listed schema references."""
    waiting: list[object] = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            node = cast("Object", part)
            ref = node.get("$ref")
            if isinstance(ref, str) and ref.startswith("#/$defs/"):
                yield ref.removeprefix("#/$defs/")
            waiting += [inner for inner in node.values() if type(inner) in _CONTAINERS]
        elif isinstance(part, list):
            waiting += cast("list[object]", part)
