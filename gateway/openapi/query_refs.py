"""How references in what the query tools show are resolved: so many levels deep, circles kept, never without end."""

from typing import TypeAlias

import msgspec

from gateway.openapi.query_links import spell_pointer
from gateway.openapi.query_outline import Outline
from gateway.openapi.references import find_step, ref_tokens
from gateway.openapi.shapes import Object, as_list, as_object, point

DEEPEST = 20
_MOST_NODES = 20_000

Json: TypeAlias = object


class Resolver:
    """The references of one document, for one answer."""

    def __init__(self, outline: Outline) -> None:
        self._targets = outline.targets
        self._section = outline.section
        self._schemas = {entry.name: entry.schema for entry in outline.schemas}
        self._read: dict[str, Json] = {}
        self._room = _MOST_NODES

    def resolve(self, value: Json, depth: int, *, within: str | None = None) -> Json:
        """The value with its references replaced by what they point at, so many of them inside each other.

        `within` is the schema that the value is, if it is one.

        What was a circle stays a reference, and so does everything beyond what one answer may hold.
        """
        return self._resolve(value, min(depth, DEEPEST), () if within is None else (f"{self._section}{point(within)}",))

    def open(self, value: Json) -> Json:
        """What a reference points at, where there is one; nothing further inside is followed."""
        node = as_object(value)
        for _ in range(DEEPEST):
            ref = None if node is None else node.get("$ref")
            target = self._find(ref) if isinstance(ref, str) else None
            found = as_object(target)
            if node is None or found is None:
                break
            node = {**found, **{key: member for key, member in node.items() if key != "$ref"}}
        return value if node is None else node

    def _resolve(self, value: Json, depth: int, above: tuple[str, ...]) -> Json:
        self._room -= 1
        items = as_list(value)
        if items is not None:
            return [self._resolve(item, depth, above) for item in items]
        node = as_object(value)
        if node is None:
            return value
        ref = node.get("$ref")
        if isinstance(ref, str) and depth > 0 and self._room > 0:
            pointer = spell_pointer(ref)
            target = None if pointer in above else self._find(ref)
            if target is not None:
                inner = self._resolve(target, depth - 1, (*above, pointer))
                return self._beside(node, inner, depth, above)
        return {key: self._resolve(member, depth, above) for key, member in node.items()}

    def _beside(self, node: Object, inner: Json, depth: int, above: tuple[str, ...]) -> Json:
        """What was referred to, with what stood beside the reference."""
        target = as_object(inner)
        if target is None or len(node) == 1:
            return inner
        own = {key: self._resolve(member, depth, above) for key, member in node.items() if key != "$ref"}
        return {**target, **own}

    def _find(self, ref: str) -> Json:
        """What the reference points at; None where that is not kept."""
        if not ref.startswith("#/"):
            return None
        pointer = spell_pointer(ref)
        if pointer not in self._read:
            raw = self._targets.get(pointer)
            self._read[pointer] = self._inside(pointer) if raw is None else msgspec.json.decode(raw)
        return self._read[pointer]

    def _inside(self, pointer: str) -> Json:
        """A named schema."""
        if not pointer.startswith(f"{self._section}/"):
            return None
        name, *rest = ref_tokens("#" + pointer[len(self._section) :])
        raw = self._schemas.get(name)
        node: Json = None if raw is None else msgspec.json.decode(raw)
        for token in rest:
            node, _ = find_step(node, token)
        return node
