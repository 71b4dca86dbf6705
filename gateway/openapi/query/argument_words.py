"""The names of the arguments of an operation or tool, and their descriptions, for the search."""

from collections import deque
from collections.abc import Iterator

from gateway.domain.json_access import as_list, as_object
from gateway.openapi.query.limits import MAX_INDEXED_LENGTH, MAX_NAMES, MAX_SEARCHED_NODES


def argument_words(schema: object) -> tuple[tuple[str, ...], str]:
    """Return the names of the properties of an input schema at all levels, and their descriptions as one text.

    Outer levels come first; at most 100 names and 2,000 characters are returned.
    """
    names: dict[str, None] = {}
    texts: list[str] = []
    for name, description in _properties(schema):
        names[name] = None
        if description:
            texts.append(description)
    return tuple(names)[:MAX_NAMES], "\n".join(dict.fromkeys(texts))[:MAX_INDEXED_LENGTH]


def _properties(schema: object) -> Iterator[tuple[str, str]]:
    """The properties in a schema and all its parts, breadth first."""
    waiting = deque([schema])
    for _ in range(MAX_SEARCHED_NODES):
        if not waiting:
            return
        node = waiting.popleft()
        mapping = as_object(node)
        for name, part in (as_object((mapping or {}).get("properties")) or {}).items():
            description = (as_object(part) or {}).get("description")
            yield name, description if isinstance(description, str) else ""
        waiting.extend((mapping or {}).values() if mapping is not None else as_list(node) or ())
