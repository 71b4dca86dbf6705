"""The relaxation of closed schemas that are merged by `allOf`, so that they allow properties of the other parts.

`additionalProperties: false` covers only the properties beside it. Documents use it in the parts of an `allOf`, or
beside the `allOf`, for the whole value. Interpreted literally, it refuses the properties of the other parts.
"""

from collections.abc import Sequence

from gateway.domain.json_access import Object, as_object
from gateway.openapi.document.json_access import NOTHING, Unusable, list_at, object_at
from gateway.openapi.document.references import References

_CLOSED = "additionalProperties"
_MAX_DEPTH = 16


def open_parts(node: Object, references: References) -> Object:
    """Open each closed part of the schema as far as its sibling parts require."""
    parts = [_target(part, references) for part in list_at(node, "allOf")]
    closed = [part.get(_CLOSED) is False for part in parts]
    if not parts or not (any(closed) or node.get(_CLOSED) is False):
        return node
    own = set(object_at(node, "properties"))
    names = [_names(part, references, 0) for part in parts]
    everything = own.union(*names)
    opened: list[object] = [
        _without_closing(part) if is_closed and everything - set(object_at(part, "properties")) else written
        for part, is_closed, written in zip(parts, closed, list_at(node, "allOf"), strict=True)
    ]
    merged = {**node, "allOf": opened}
    if node.get(_CLOSED) is False and everything - own:
        merged = {**_without_closing(merged), "unevaluatedProperties": False}
    return merged


def _names(node: Object, references: References, depth: int) -> set[str]:
    inner: Sequence[object] = list_at(node, "allOf") if depth < _MAX_DEPTH else ()
    return set(object_at(node, "properties")).union(
        *(_names(_target(part, references), references, depth + 1) for part in inner)
    )


def _without_closing(node: Object) -> dict[str, object]:
    return {key: value for key, value in node.items() if key != _CLOSED}


def _target(part: object, references: References) -> Object:
    try:
        return references.follow(part, "a schema")
    except Unusable:
        return as_object(part) or NOTHING
