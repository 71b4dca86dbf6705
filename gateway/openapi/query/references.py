"""The resolver of references in results of the query tools, to a limited depth; cycles stay references."""

from typing import TypeAlias

import msgspec

from gateway.domain.json_access import Object, as_list, as_object, point
from gateway.domain.json_text import decode_json
from gateway.openapi.document.references import find_step, ref_tokens
from gateway.openapi.query.limits import MAX_DEPTH, MAX_RESOLVED_LEVELS, MAX_RESOLVED_NODES
from gateway.openapi.query.links import canonical_pointer
from gateway.openapi.query.outline import Outline

Json: TypeAlias = object


class _RefPosition(msgspec.Struct, frozen=True):
    """The position of a value: remaining depth of references, nesting level, and the references around it."""

    depth: int
    level: int
    above: tuple[str, ...]

    @property
    def is_open(self) -> bool:
        return self.depth > 0 and self.level < MAX_RESOLVED_LEVELS  # guard: resolved-depth

    def inside(self) -> "_RefPosition":
        return _RefPosition(self.depth, self.level + 1, self.above)

    def behind(self, pointer: str) -> "_RefPosition":
        return _RefPosition(self.depth - 1, self.level, (*self.above, pointer))


class Resolver:
    """Resolves the references of one document for one result."""

    def __init__(self, outline: Outline) -> None:
        self._targets = outline.targets
        self._section = outline.section
        self._schemas = {entry.name: entry.schema for entry in outline.schemas}
        self._read: dict[str, Json] = {}
        self._room = MAX_RESOLVED_NODES

    def resolve(self, value: Json, depth: int, *, within: str | None = None) -> Json:
        """Replace the references in a value with their targets, nested at most `depth` deep.

        `within` is the name of the value if it is a named schema. References that form a cycle, have no stored target,
        or follow the first 20,000 values of a result stay unresolved.
        """
        above = () if within is None else (f"{self._section}{point(within)}",)
        return self._resolve(value, _RefPosition(min(depth, MAX_DEPTH), 0, above))

    def open(self, value: Json) -> Json:
        """Return the value; a reference is replaced by its target and the members beside it, also along a chain."""
        node = as_object(value)
        for _ in range(MAX_DEPTH):
            ref = None if node is None else node.get("$ref")
            target = self._find(ref) if isinstance(ref, str) else None
            found = as_object(target)
            if node is None or found is None:
                break
            node = {**found, **{key: member for key, member in node.items() if key != "$ref"}}
        return value if node is None else node

    def _resolve(self, value: Json, position: "_RefPosition") -> Json:
        if not position.is_open or self._room <= 0:
            return value
        self._room -= 1
        items = as_list(value)
        if items is not None:
            inside = position.inside()
            return [self._resolve(item, inside) for item in items]
        node = as_object(value)
        if node is None:
            return value
        ref = node.get("$ref")
        if isinstance(ref, str):
            pointer = canonical_pointer(ref)
            target = None if pointer in position.above else self._find(ref)
            if target is not None:
                return self._merge(node, self._resolve(target, position.behind(pointer)), position)
        inside = position.inside()
        return {key: self._resolve(member, inside) for key, member in node.items()}

    def _merge(self, node: Object, inner: Json, position: "_RefPosition") -> Json:
        """The target, overridden by the members beside the reference."""
        target = as_object(inner)
        if target is None or len(node) == 1:
            return inner
        inside = position.inside()
        own = {key: self._resolve(member, inside) for key, member in node.items() if key != "$ref"}
        return {**target, **own}

    def _find(self, ref: str) -> Json:
        """The target of the reference; None if the outline does not contain the target."""
        if not ref.startswith("#/"):
            return None
        pointer = canonical_pointer(ref)
        if pointer not in self._read:
            raw = self._targets.get(pointer)
            self._read[pointer] = self._inside(pointer) if raw is None else decode_json(raw)
        return self._read[pointer]

    def _inside(self, pointer: str) -> Json:
        """The named schema, or part of a named schema, at the pointer."""
        if not pointer.startswith(f"{self._section}/"):
            return None
        name, *rest = ref_tokens("#" + pointer[len(self._section) :])
        raw = self._schemas.get(name)
        node: Json = None if raw is None else decode_json(raw)
        for token in rest:
            node, _ = find_step(node, token)
        return node
