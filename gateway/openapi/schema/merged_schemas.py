"""The schema of an argument with its references and `allOf` merged into one, for shortened lists.

The merged schema accepts what the argument accepts: properties and `required` are united, and keywords with different
values stay in `allOf`. Keywords that depend on the properties beside them are left out if several schemas are merged.
"""

from collections.abc import Mapping, Sequence

import msgspec

from gateway.domain.json_access import Object, as_list, as_object
from gateway.openapi.schema.components import Component
from gateway.openapi.schema.definition_names import referenced_names
from gateway.openapi.schema.limits import MAX_UNITED

_ANNOTATIONS = frozenset(("title", "description", "examples", "default", "deprecated"))
_DEPENDENT = frozenset(
    ("additionalProperties", "unevaluatedProperties", "unevaluatedItems", "patternProperties", "minContains")
)


class MergedSchema(msgspec.Struct, frozen=True, kw_only=True):
    """A merged schema, and the bytes of the shared schemas that it was made of."""

    schema: object
    shared_bytes: int = 0


def merge(schema: object, shared: Mapping[str, Component]) -> MergedSchema:
    """Merge a schema with its shared schemas; it stays as it is if a part is unknown, or has no keywords."""
    layers: list[Object] = []
    names: dict[str, int] = {}
    queue = [schema]
    for item in queue:
        node = as_object(item)
        if node is None or len(layers) >= MAX_UNITED:
            return MergedSchema(schema=schema)
        layers.append({key: value for key, value in node.items() if key not in {"$ref", "allOf"}})
        for name in referenced_names({"$ref": node.get("$ref")}):
            if name not in shared:
                return MergedSchema(schema=schema)
            if name not in names:
                names[name] = len(shared[name].text)
                queue.append(shared[name].schema)
        queue += as_list(node.get("allOf")) or ()
    merged = _unite([layer for layer in layers if layer]) if len(layers) > 1 else schema
    return MergedSchema(schema=merged, shared_bytes=sum(names.values()))


def _unite(layers: Sequence[Object]) -> dict[str, object]:
    """Unite schemas of the same value, the nearest first."""
    out: dict[str, object] = {}
    members: dict[str, object] = {}
    required: dict[object, None] = {}
    rest: list[object] = []
    for layer in layers:
        required.update(dict.fromkeys(as_list(layer.get("required")) or ()))
        for name, part in (as_object(layer.get("properties")) or {}).items():
            if members.setdefault(name, part) != part:
                rest.append({"properties": {name: part}})
        for keyword, value in layer.items():
            if keyword in {"properties", "required"} or (keyword in _DEPENDENT and len(layers) > 1):
                continue
            if out.setdefault(keyword, value) != value and keyword not in _ANNOTATIONS:
                rest.append({keyword: value})
    out |= {"properties": members} if members else {}
    out |= {"required": [*required]} if required else {}
    return out | ({"allOf": rest} if rest else {})
