"""The schemas that `allOf` merges, and the relaxation of closed ones, so that they allow properties of the other parts.

`additionalProperties: false` covers only the properties beside it. Documents use it in the parts of an `allOf`, or
beside the `allOf`, for the whole value. Interpreted literally, it refuses the properties of the other parts.
"""

from gateway.domain.json_access import Object, as_list, as_object
from gateway.openapi.document.json_access import Unusable, list_at, object_at
from gateway.openapi.document.references import References
from gateway.openapi.schema.limits import MAX_COPIED_VALUES, MAX_MERGED, MAX_MERGED_PARTS

_CLOSED = "additionalProperties"


class ClosedParts:
    """The relaxation of closed schemas in one document; at most 20,000 values are copied for it."""

    def __init__(self) -> None:
        self._room = MAX_COPIED_VALUES

    def open(self, node: Object, references: References) -> Object | None:
        """Return the schema with each closed part open as far as its sibling parts require; None beyond the limit."""
        parts = [_target(part, references) for part in list_at(node, "allOf")]
        closed = [part.get(_CLOSED) is False for part in parts]
        if not parts or not (any(closed) or node.get(_CLOSED) is False):
            return node
        own = set(object_at(node, "properties"))
        everything = own.union(*(object_at(part, "properties") for part in merged_schemas(node, references)))
        opened: list[object] = []
        for part, is_closed, written in zip(parts, closed, list_at(node, "allOf"), strict=True):
            is_opened = is_closed and everything - set(object_at(part, "properties"))
            opened.append(_without_closing(part) if is_opened else written)
            if is_opened and not self._take(part):
                return None
        merged = {**node, "allOf": opened}
        if node.get(_CLOSED) is False and everything - own:
            merged = {**_without_closing(merged), "unevaluatedProperties": False}
        return merged

    def _take(self, part: Object) -> bool:
        """Count the values of a copied part; False beyond the limit."""
        waiting: list[object] = [part]
        while waiting and self._room > 0:
            self._room -= 1
            value = waiting.pop()
            waiting += as_list(value) or (as_object(value) or {}).values()
        return not waiting


def merged_schemas(node: object, references: References) -> list[Object]:
    """Return the schema, the targets of its references, and the parts of its `allOf`, also nested, nearest first.

    Each schema is visited once, so that a hostile hierarchy costs at most 200 schemas and 2,000 parts.
    """
    found: list[Object] = []
    seen: set[int] = set()
    queue = [node]
    for item in queue:
        schema = as_object(item)
        if schema is None or id(schema) in seen:
            continue
        if len(found) >= MAX_MERGED:
            break
        seen.add(id(schema))
        found.append(schema)
        parts = list_at(schema, "allOf")
        queue += [*_targets(schema, references), *parts[: max(0, MAX_MERGED_PARTS - len(queue))]]
    return found


def _targets(node: Object, references: References) -> list[object]:
    ref = node.get("$ref")
    try:
        return [references.target(ref)] if isinstance(ref, str) else []
    except Unusable:
        return []


def _without_closing(node: Object) -> dict[str, object]:
    return {key: value for key, value in node.items() if key != _CLOSED}


def _target(part: object, references: References) -> Object:
    try:
        return references.follow(part, "a schema")
    except Unusable:
        return as_object(part) or {}
