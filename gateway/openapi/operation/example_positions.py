"""The positions of refused examples in the document as it is written.

A compiled schema differs from the document: references are followed, forms are assembled, Swagger 2.0 is converted. The
values of examples pass through all of it unchanged. So a refused example is found by the identity of its value, in the
part of the document from which its schema was compiled; among equal small values, the path in the schema decides.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

import msgspec

from gateway.domain.json_access import Object, as_list, as_object, point, tokens_of
from gateway.openapi.document.json_access import NOTHING, Unusable, clean_text
from gateway.openapi.document.limits import MAX_REFERENCE_CHAIN
from gateway.openapi.document.reference_kinds import LITERAL, kind_of_member
from gateway.openapi.document.references import (
    PARAMETERS,
    References,
    find_step,
    is_beside_reference,
    ref_tokens,
)
from gateway.openapi.operation.limits import MAX_POSITION_LENGTH, MAX_POSITION_VISITS, MAX_RANKED_POSITIONS
from gateway.openapi.schema.examples import Path
from gateway.openapi.schema.keywords import IN_PLACE_LISTS

Tokens: TypeAlias = tuple[str, ...]
Origin: TypeAlias = Callable[[Tokens], str]
"""Returns the text of a position: in a document of several files, the file, `#`, and a JSON Pointer."""

_Index: TypeAlias = Mapping[tuple[int, Tokens | None], Sequence[tuple[Tokens, Tokens]]]


_SCHEMAS = "schemas"
_SINGLE = frozenset(("example", "x-example"))
_NAMED_VALUES = frozenset(("value", "dataValue"))
_HOLDERS = frozenset(("parameters", "headers", "mediaTypes", _SCHEMAS))
_MAPS = frozenset(("properties", "patternProperties", "dependentSchemas"))


class _Located(msgspec.Struct, frozen=True):
    """A value of the document with its kind and position, and its path in the compiled schema (without branches)."""

    node: object
    kind: str
    at: Tokens
    names: Tokens = ()


class ExamplePositions:
    """The positions of one document's examples; `compiled` is its root in the form of OpenAPI 3."""

    def __init__(self, root: Object, compiled: Object, references: References, *, origin: Origin | None = None) -> None:
        self._root = root
        self._compiled = compiled
        self._references = references
        self._origin = origin
        self._indexes: dict[bool, tuple[str, _Index]] = {}
        self._visits = MAX_POSITION_VISITS

    def find(self, where: str, path: Path, value: object) -> str:
        """Return the position of an example as `#` and a JSON Pointer; in a document of several files after the file.

        `where` is the position of a shared schema, parameter, body or responses, and `path` the path in its schema.
        """
        names = _names_of(path)
        found: Sequence[tuple[Tokens, Tokens]] = ()
        for follows_schemas in (False, True):
            if not found:
                index = self._index(where, follows_schemas=follows_schemas)
                found = index.get((id(value), names)) or index.get((id(value), None), ())
        nearest = min(found[:MAX_RANKED_POSITIONS], key=lambda spot: abs(len(spot[1]) - len(names)), default=None)
        at = nearest[0] if nearest is not None else (*tokens_of(where), *map(str, path))
        text = clean_text(self._origin(at) if self._origin is not None else f"#{point(*at)}")
        return text if len(text) <= MAX_POSITION_LENGTH else f"{text[: MAX_POSITION_LENGTH - 1]}…"

    def _index(self, where: str, *, follows_schemas: bool) -> _Index:
        """The positions and paths of all examples of one part, by the identity of the value, also with its path.

        The index of the last part is kept.
        """
        if self._indexes.get(follows_schemas, ("",))[0] != where:
            index: dict[tuple[int, Tokens | None], list[tuple[Tokens, Tokens]]] = {}
            for spot in self._examples(self._parts(where), follows_schemas=follows_schemas):
                for names in (spot.names, None):
                    index.setdefault((id(spot.node), names), []).append((spot.at, spot.names))
            self._indexes[follows_schemas] = where, index
        return self._indexes[follows_schemas][1]

    def _parts(self, where: str) -> Sequence[_Located]:
        """The part at a position of the compiled document; for a body of Swagger 2.0, its parameters."""
        tokens = tokens_of(where)
        if "swagger" in self._root and tokens[:1] == ["paths"] and tokens[3:4] in ([PARAMETERS], ["requestBody"]):
            return self._swagger_parts(tokens)
        spot = self._reach(tokens)
        return [spot] if spot is not None else []

    def _swagger_parts(self, tokens: Sequence[str]) -> Sequence[_Located]:
        declared: dict[tuple[object, object], _Located] = {}
        for level in (tokens[:2], tokens[:3]):
            for spot in self._parameters(level):
                node = as_object(spot.node) or NOTHING
                declared[node.get("name"), node.get("in")] = spot
        if tokens[3] == "requestBody":
            return [
                spot if location == "body" else msgspec.structs.replace(spot, names=("properties", str(name)))
                for (name, location), spot in declared.items()
                if location in ("body", "formData")
            ]
        value: object = self._compiled
        for token in tokens:
            value, _ = find_step(value, token)
        converted = as_object(value) or NOTHING
        found = declared.get((converted.get("name"), converted.get("in")))
        return [found] if found is not None else []

    def _parameters(self, level: Sequence[str]) -> Iterator[_Located]:
        number = 0
        while (spot := self._reach([*level, PARAMETERS, str(number)])) is not None:
            yield spot
            number += 1

    def _reach(self, tokens: Sequence[str]) -> _Located | None:
        """The value at a path on which references are followed, also at its end."""
        spot = _Located(self._root, "document", ())
        waiting = deque(tokens)
        while waiting:
            token = waiting.popleft()
            spot = self._passed(spot, token, waiting)
            node, is_there = find_step(spot.node, token)
            if not is_there:
                return None
            kind = spot.kind if as_list(spot.node) is not None else kind_of_member(spot.kind, token)
            spot = _Located(node, kind, (*spot.at, token))
        return self._end(spot)

    def _passed(self, spot: _Located, token: str, waiting: deque[str]) -> _Located:
        """The object that has the token: the value itself or the end of its references.

        The parameters of a path item beside a reference follow those of its target.
        """
        node = as_object(spot.node) or NOTHING
        if not isinstance(node.get("$ref"), str) or (token in node and token != PARAMETERS):
            return spot
        target = self._end(spot)
        is_own = token == PARAMETERS and is_beside_reference(as_object(target.node) or NOTHING, waiting)
        return spot if is_own else target

    def _end(self, spot: _Located) -> _Located:
        """The end of a chain of references."""
        for _ in range(MAX_REFERENCE_CHAIN):
            ref = (as_object(spot.node) or NOTHING).get("$ref")
            if not isinstance(ref, str) or not ref.startswith("#"):
                break
            try:
                spot = _Located(self._references.target(ref), spot.kind, tuple(ref_tokens(ref)), spot.names)
            except Unusable:
                break
        return spot

    def _examples(self, parts: Sequence[_Located], *, follows_schemas: bool) -> Iterator[_Located]:
        """Yield every example in these parts, nearest first."""
        waiting = deque(parts)
        seen: set[int] = set()
        while waiting and self._visits > 0:
            self._visits -= 1
            spot = waiting.popleft()
            if (items := as_list(spot.node)) is not None:
                waiting += [_Located(item, spot.kind, (*spot.at, str(n)), spot.names) for n, item in enumerate(items)]
                continue
            node = as_object(spot.node)
            if node is None or spot.kind == LITERAL:
                continue
            if isinstance(node.get("$ref"), str) and (spot.kind != _SCHEMAS or follows_schemas):
                end = self._end(spot)
                if id(end.node) not in seen:
                    seen.add(id(end.node))
                    waiting.append(end)
            for key, part in node.items():
                inner = _Located(part, kind_of_member(spot.kind, key), (*spot.at, key), _inner_names(spot, key))
                yield from _values(spot, key, inner)
                waiting.append(inner)


def _values(spot: _Located, key: str, inner: _Located) -> Iterator[_Located]:
    """Yield the examples under one member of an object."""
    if (key in _SINGLE and spot.kind in _HOLDERS) or (key in _NAMED_VALUES and spot.kind == "examples"):
        yield msgspec.structs.replace(inner, names=spot.names)
    elif key == "examples" and spot.kind == "responses":  # Swagger 2.0
        for name, value in (as_object(inner.node) or NOTHING).items():
            yield _Located(value, LITERAL, (*inner.at, name), spot.names)
    elif key == "examples" and spot.kind == _SCHEMAS:
        for number, value in enumerate(as_list(inner.node) or ()):
            yield _Located(value, LITERAL, (*inner.at, str(number)), spot.names)


def _inner_names(spot: _Located, key: str) -> Tokens:
    if spot.kind == f"map:{_SCHEMAS}":
        return (*spot.names, key)
    is_step = (spot.kind == _SCHEMAS and key not in IN_PLACE_LISTS) or key == "items"
    return (*spot.names, "items" if key == "prefixItems" else key) if is_step else spot.names


def _names_of(path: Path) -> Tokens:
    """The path in a compiled schema without branches and indexes."""
    names: list[str] = []
    is_name = False
    for step in path:
        if is_name or not (isinstance(step, int) or step in IN_PLACE_LISTS):
            names.append("items" if step == "prefixItems" and not is_name else str(step))
        is_name = not is_name and step in _MAPS
    return tuple(names)
