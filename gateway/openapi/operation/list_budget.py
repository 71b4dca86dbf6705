"""Shortening of an input schema to the byte budget of one tool in a list (decision 50).

First the descriptions of deeply nested properties are removed, then deep levels are replaced by a stub. Shared schemas
are kept nearest first. Names and `required` of the arguments are always kept. Calls are validated against the full
schema, which `get_endpoint_details` returns.
"""

from collections.abc import Mapping, Sequence

import msgspec
import orjson

from gateway.domain.json_access import as_list, as_object
from gateway.openapi.operation.schema_assembly import MEMBER_BYTES, Argument, define, input_root
from gateway.openapi.schema.components import Component, Components
from gateway.openapi.schema.definition_names import referenced_names
from gateway.openapi.schema.json_types import types_of
from gateway.openapi.schema.keywords import CHILD, IN_PLACE_LISTS
from gateway.openapi.schema.relaxation import relax

TOOL_BYTES = 16_000
"""Limit on the bytes of one tool in a list; a larger tool is shortened."""

COMPACT_TOOL_BYTES = 6_000
"""Limit on the bytes of a compact tool, for a list that is too large in total."""

LIST_BYTES = 2_000_000
"""Limit on the bytes of a source's list; beyond it, shortened tools become compact, those that save most first."""

SHORTENED = "…"
"""The description of a stub."""

_ALL_LEVELS = 99

_STEPS: Sequence[tuple[int, int]] = (
    (_ALL_LEVELS, 3),
    (_ALL_LEVELS, 2),
    (6, 2),
    (4, 2),
    (3, 2),
    (2, 2),
    (1, 2),
    (1, 1),
    (0, 1),
)
"""Shortening steps: the number of kept levels, and the level from which descriptions are removed."""

_SHARE = 3 / 4
"""Share of the budget for the arguments' own schemas; the rest is for shared schemas."""

_RESERVES = (300, 1_000, 3_000, 6_000)
"""Reductions of the budget, tried in order if the stubs exceed the bytes reserved for them."""

_STUB_BYTES = 40
_MAX_REQUIRED = 20
_MAX_VALUES = 30
_ANNOTATIONS = frozenset(("title", "description", "examples", "default"))
_INNER = (*CHILD, "items")
_INNER_MAPS = ("properties", "patternProperties")


class ListBudget:
    """The arguments and shared schemas of one input schema, and the selection of those that fit into a budget."""

    def __init__(self, arguments: Sequence[Argument], needed: Sequence[Component], components: Components) -> None:
        self._arguments = arguments
        self._by_name = {component.name: component for component in needed}
        self._components = components
        self._roots: dict[tuple[int, int, tuple[bool, ...]], _Root] = {}

    def shorten(self, room: int) -> "ShortenedSchema":
        """Shorten the schema to `room` bytes; the result is larger only if the names of the arguments need more."""
        found = self._shorten(room)
        for reserve in _RESERVES:
            if len(found.text) <= room:
                break
            found = self._shorten(room - reserve)
        return found

    def _shorten(self, room: int) -> "ShortenedSchema":
        """Return the schema in about `room` bytes; it can be larger, because stubs may exceed their reserved bytes."""
        root = self._root(room)
        included = self._described(self._nearest(root.links, room - root.length), room - root.length)
        listed = {part.name for part in included}
        stubs = {
            name: _stub(self._by_name[name].schema)
            for names in (root.names, *(part.names for part in included))
            for name in names
            if name not in listed and name in self._by_name
        }
        definitions = {**{part.name: orjson.Fragment(part.text) for part in included}, **stubs}
        text = orjson.dumps(define(root.schema, definitions))
        return ShortenedSchema(text=text, lacks_parts=root.lacks_parts or bool(stubs))

    def _root(self, room: int) -> "_Root":
        """Return the schema of the arguments, cut to its share of the budget."""
        schemas = {item.name: _opened(item.translated.schema, self._by_name, room) for item in self._arguments}
        is_opened = tuple(schemas[item.name] is not item.translated.schema for item in self._arguments)
        found = _Root()
        for kept, plain in _STEPS:
            key = kept, plain, is_opened
            if key not in self._roots:  # a smaller room begins with the same steps
                self._roots[key] = self._cut_root(schemas, kept, plain)
            found = self._roots[key]
            if found.length + self._stub_bytes(found.links) <= room * _SHARE:
                break
        return found

    def _cut_root(self, schemas: Mapping[str, object], kept: int, plain: int) -> "_Root":
        required = [item.name for item in self._arguments if item.is_required]
        schema = input_root({name: relax(_cut(part, 1, kept, plain)) for name, part in schemas.items()}, required)
        names = tuple(dict.fromkeys(referenced_names(schema)))
        links = [self._by_name[name].ref for name in names if name in self._by_name]
        length = len(orjson.dumps(schema))
        return _Root(schema=schema, length=length, names=names, links=links, lacks_parts=kept < _ALL_LEVELS)

    def _nearest(self, links: Sequence[str], room: int) -> Sequence[Component]:
        """Return the nearest shared schemas that fit without descriptions; stubs of the others are counted, too."""
        found: list[Component] = []
        stubs = set(links)
        room -= self._stub_bytes(links)
        for component in self._components.closure(links):
            if component.ref not in stubs:
                continue
            brief = self._components.relaxed(component, is_brief=True)
            if len(brief.text) - _STUB_BYTES > room:
                continue
            fresh = [link for link in component.translated.links if link not in stubs]
            cost = len(brief.text) - _STUB_BYTES + self._stub_bytes(fresh)
            if cost <= room:
                room -= cost
                stubs.update(fresh)
                found.append(brief)
        return found

    def _described(self, brief: Sequence[Component], room: int) -> Sequence[Component]:
        """Restore the descriptions of the nearest schemas, as far as they fit."""
        room -= sum(len(part.text) + len(part.name) + MEMBER_BYTES for part in brief)
        room -= self._stub_bytes([link for part in brief for link in part.translated.links])
        found: list[Component] = []
        for part in brief:
            whole = self._components.relaxed(self._by_name[part.name], is_brief=False)
            cost = len(whole.text) - len(part.text)
            room -= cost if (fits := cost <= room) else 0
            found.append(whole if fits else part)
        return found

    def _stub_bytes(self, links: Sequence[str]) -> int:
        return sum(len(self._components.name_of(link)) + MEMBER_BYTES + _STUB_BYTES for link in dict.fromkeys(links))


class ShortenedSchema(msgspec.Struct, frozen=True, kw_only=True):
    """A shortened schema; if it lacks no parts, it lacks descriptions only."""

    text: bytes
    lacks_parts: bool


class _Root(msgspec.Struct, frozen=True, kw_only=True):
    """The schema of the arguments, cut to a number of levels; its size, and the shared schemas that it references."""

    schema: dict[str, object] = msgspec.field(default_factory=dict[str, object])
    length: int = 0
    names: tuple[str, ...] = ()
    links: Sequence[str] = ()
    lacks_parts: bool = False


def _opened(schema: object, by_name: Mapping[str, Component], room: int) -> object:
    """Return the schema of an argument, with a reference to a large shared schema resolved."""
    node = as_object(schema)
    names = list(referenced_names({key: node[key] for key in ("$ref",) if key in node})) if node is not None else []
    found = by_name.get(names[0]) if names else None
    if node is None or found is None or len(found.text) < room // 4:
        return schema
    target = as_object(found.schema)
    return schema if target is None else {**target, **{key: value for key, value in node.items() if key != "$ref"}}


def _cut(schema: object, level: int, kept: int, plain: int) -> object:
    """Cut a schema to `kept` levels, and remove annotations from the level `plain` on."""
    node = as_object(schema)
    if node is None:
        return schema
    if level > kept:
        return {} if kept == 1 else _stub(node)
    out: dict[str, object] = {}
    for keyword, value in node.items():
        if keyword in _ANNOTATIONS and level > plain:
            continue
        if keyword in _INNER_MAPS:
            parts = as_object(value) or {}
            out[keyword] = {name: _cut(part, level + 1, kept, plain) for name, part in parts.items()}
        elif keyword in _INNER:
            out[keyword] = _cut(value, level + 1, kept, plain)
        elif keyword in IN_PLACE_LISTS:
            out[keyword] = [_cut(part, level, kept, plain) for part in as_list(value) or ()]
        elif keyword == "prefixItems":
            out[keyword] = [_cut(part, level + 1, kept, plain) for part in as_list(value) or ()]
        elif keyword != "enum" or kept > 1 or len(as_list(value) or ()) <= _MAX_VALUES:
            out[keyword] = value
    return out


def _stub(schema: object) -> dict[str, object]:
    """Reduce a schema to its type and required members; the stub accepts every value that the schema accepts."""
    node = as_object(schema) or {}
    out: dict[str, object] = {"type": node["type"]} if types_of(node) else {}
    if "array" in types_of(node):
        out["items"] = {}
    required = as_list(node.get("required")) or ()
    if 0 < len(required) <= _MAX_REQUIRED:
        out["required"] = required
    return out | {"description": SHORTENED}
