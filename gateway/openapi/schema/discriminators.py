"""Subtypes of a schema that its discriminator implies but does not list.

A schema with a `discriminator` and neither `oneOf` nor `anyOf` represents itself and the schemas whose `allOf`
references it, directly or indirectly; at most 100.
"""

from collections.abc import Mapping, Sequence

from gateway.domain.json_access import Object, as_object, point
from gateway.openapi.document.json_access import Unusable, list_at, object_at
from gateway.openapi.document.references import References
from gateway.openapi.schema.limits import MAX_SUBTYPES
from gateway.openapi.schema.property_values import Steps

_SECTIONS = (("components", "schemas"), ("definitions",))


class Discriminators:
    """The schema hierarchies of one document, built on first use."""

    def __init__(self, root: Object, references: References) -> None:
        self._root = root
        self.references = references
        self._children: Mapping[str, Sequence[str]] | None = None
        self.steps = Steps()

    def of(self, ref: str, node: object) -> Sequence[str]:
        """Return references to the implied subtypes of this schema; none if it has no discriminator or lists them."""
        schema = as_object(node)
        if schema is None or "discriminator" not in schema or not {"oneOf", "anyOf"}.isdisjoint(schema):
            return ()
        if self._children is None:
            self._children = self._read()
        found: dict[str, None] = {}
        queue = [ref]
        for parent in queue:
            for child in self._children.get(parent, ()):
                if child not in found and child != ref and len(found) < MAX_SUBTYPES:
                    found[child] = None
                    queue.append(child)
        return tuple(found)

    def _read(self) -> Mapping[str, Sequence[str]]:
        children: dict[str, list[str]] = {}
        for section in _SECTIONS:
            schemas = self._root
            for token in section:
                schemas = object_at(schemas, token)
            for name, schema in schemas.items():
                for parent in self._parents(as_object(schema) or {}):
                    children.setdefault(parent, []).append("#" + point(*section, name))
        return children

    def _parents(self, schema: Object) -> Sequence[str]:
        refs = [ref for part in list_at(schema, "allOf") if isinstance(ref := (as_object(part) or {}).get("$ref"), str)]
        return [self.references.canonical(ref) for ref in refs if self._is_here(ref)]

    def _is_here(self, ref: str) -> bool:
        try:
            self.references.target(ref)
        except Unusable:
            return False
        return True
