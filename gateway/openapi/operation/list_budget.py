"""Shortening of an input schema to the byte budget of one tool in a list (decision 50).

First the descriptions of deeply nested properties are removed, then deep levels are replaced by a stub. Shared schemas
are kept nearest first. Names and `required` of the arguments are always kept, and the required members of an argument
as far as the budget allows, also those behind references and `allOf`. Calls are validated against the full schema,
which `get_endpoint_details` returns.
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec
import orjson

from gateway.domain.json_access import as_list, as_object
from gateway.openapi.operation.limits import (
    COMPACT_TOOL_BYTES,
    MAX_KEPT_VALUES,
    MAX_STUB_REQUIRED,
    MEMBER_BYTES,
    STUB_BYTES,
)
from gateway.openapi.operation.schema_assembly import Argument, define, input_root
from gateway.openapi.schema.components import Component, Components
from gateway.openapi.schema.definition_names import referenced_names
from gateway.openapi.schema.json_types import types_of
from gateway.openapi.schema.keywords import CHILD, IN_PLACE_LISTS
from gateway.openapi.schema.merged_schemas import merge
from gateway.openapi.schema.relaxation import relax

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
    (2, 1),
    (1, 3),
    (1, 2),
    (1, 1),
    (0, 1),
    (-1, 1),
)
"""Shortening steps: the number of kept levels, and the level from which descriptions are removed.

The last step limits the required members of an argument, too.
"""

_COMPACT_STEPS = [step for step in _STEPS if step not in {(2, 1), (1, 3)}]
"""The steps of compact tools: types of members give way to descriptions of arguments, because the list is too large."""

_SHARE = 3 / 4
"""Share of the budget for the arguments' own schemas; the rest is for shared schemas."""

_RESERVES = (300, 1_000, 3_000, 6_000)
"""Reductions of the budget, tried in order if the stubs exceed the bytes reserved for them."""

_ANNOTATIONS = frozenset(("title", "description", "examples", "default"))
_INNER = (*CHILD, "items")
_INNER_MAPS = ("properties", "patternProperties")


class ListBudget:
    """The arguments and shared schemas of one input schema, and the selection of those that fit into a budget."""

    def __init__(self, arguments: Sequence[Argument], needed: Sequence[Component], components: Components) -> None:
        self._arguments = arguments
        self._by_name = {component.name: component for component in needed}
        self._components = components
        self._merged = {item.name: merge(item.translated.schema, self._by_name) for item in arguments}
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
        if longer := self._longer_stubs(root, stubs, room - len(text)):
            text = orjson.dumps(define(root.schema, {**definitions, **longer}))
        return ShortenedSchema(text=text, lacks_parts=root.lacks_parts or bool(stubs))

    def _longer_stubs(self, root: "_Root", stubs: Mapping[str, object], room: int) -> Mapping[str, object]:
        """Stubs of the schemas that apply to a whole argument, with the names of their members as far as they fit."""
        longer: dict[str, object] = {}
        for name in root.outer_names:
            if name not in stubs:
                continue
            stub = stubs[name]
            for form in _member_forms(self._by_name[name].schema):
                cost = len(orjson.dumps(form)) - len(orjson.dumps(stub))
                if 0 < cost <= room:
                    longer[name], room = form, room - cost
                    break
        return longer

    def _root(self, room: int) -> "_Root":
        """Return the schema of the arguments, cut to its share of the budget."""
        is_large = [self._merged[item.name].shared_bytes >= room // 4 for item in self._arguments]
        found = _Root()
        for kept, plain in _STEPS if room > COMPACT_TOOL_BYTES else _COMPACT_STEPS:
            is_merged = tuple(kept < 1 or large for large in is_large)
            key = kept, plain, is_merged
            if key not in self._roots:  # a smaller room begins with the same steps
                chosen = zip(self._arguments, is_merged, strict=True)
                schemas = {item.name: self._form(item, is_merged=merged) for item, merged in chosen}
                self._roots[key] = self._cut_root(schemas, kept, plain)
            found = self._roots[key]
            if found.length + self._stub_bytes(found.links) <= room * _SHARE:
                break
        return found

    def _form(self, item: Argument, *, is_merged: bool) -> object:
        return self._merged[item.name].schema if is_merged else item.translated.schema

    def _cut_root(self, schemas: Mapping[str, object], kept: int, plain: int) -> "_Root":
        required = [item.name for item in self._arguments if item.is_required]
        shown = {item.name: item.described(relax(_cut(schemas[item.name], 1, kept, plain))) for item in self._arguments}
        schema = input_root(shown, required)
        names = tuple(dict.fromkeys(referenced_names(schema)))
        links = [self._by_name[name].ref for name in names if name in self._by_name]
        length = len(orjson.dumps(schema))
        outer = tuple(dict.fromkeys(name for part in schemas.values() for name in _outer_names(part)))
        return _Root(
            schema=schema,
            length=length,
            names=names,
            outer_names=outer,
            links=links,
            lacks_parts=kept < _ALL_LEVELS,
        )

    def _nearest(self, links: Sequence[str], room: int) -> Sequence[Component]:
        """Return the nearest shared schemas that fit without descriptions; stubs of the others are counted, too."""
        found: list[Component] = []
        stubs = set(links)
        room -= self._stub_bytes(links)
        for component in self._components.closure(links):
            if component.ref not in stubs:
                continue
            brief = self._components.relaxed(component, is_brief=True)
            if len(brief.text) - STUB_BYTES > room:
                continue
            fresh = [link for link in component.translated.links if link not in stubs]
            cost = len(brief.text) - STUB_BYTES + self._stub_bytes(fresh)
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
        return sum(len(self._components.name_of(link)) + MEMBER_BYTES + STUB_BYTES for link in dict.fromkeys(links))


class ShortenedSchema(msgspec.Struct, frozen=True, kw_only=True):
    """A shortened schema; if it lacks no parts, it lacks descriptions only."""

    text: bytes
    lacks_parts: bool


class _Root(msgspec.Struct, frozen=True, kw_only=True):
    """The schema of the arguments, cut to a number of levels; its size, and the shared schemas that it references."""

    schema: dict[str, object] = msgspec.field(default_factory=dict[str, object])
    length: int = 0
    names: tuple[str, ...] = ()
    outer_names: tuple[str, ...] = ()
    """The shared schemas that apply to a whole argument."""
    links: Sequence[str] = ()
    lacks_parts: bool = False


def _cut(schema: object, level: int, kept: int, plain: int) -> object:
    """Cut a schema to `kept` levels, and remove annotations from the level `plain` on."""
    node = as_object(schema)
    if node is None:
        return schema
    if level > kept:
        return _cut_level(node, kept, plain)
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
        elif keyword != "enum" or kept > 1 or len(as_list(value) or ()) <= MAX_KEPT_VALUES:
            out[keyword] = value
    return out


def _cut_level(node: Mapping[str, object], kept: int, plain: int) -> dict[str, object]:
    """Reduce a schema below the kept levels; of one kept level, members are listed with their types, then without."""
    if kept != 1:
        return _stub(node, None if kept == 0 else MAX_STUB_REQUIRED)
    return {"type": node["type"]} if plain > 2 and "type" in node else {}


def _stub(schema: object, most_required: int | None = MAX_STUB_REQUIRED) -> dict[str, object]:
    """Reduce a schema to its type and required members; the stub accepts every value that the schema accepts."""
    node = as_object(schema) or {}
    out: dict[str, object] = {"type": node["type"]} if types_of(node) else {}
    if "array" in types_of(node):
        out["items"] = {}
    required = as_list(node.get("required")) or ()
    if required and (most_required is None or len(required) <= most_required):
        out["required"] = required
    return out | {"description": SHORTENED}


def _member_forms(schema: object) -> Iterator[dict[str, object]]:
    """Yield longer stubs: with the names of the members, then with the required ones only."""
    stub = _stub(schema, None)
    if members := as_object((as_object(schema) or {}).get("properties")):
        yield stub | {"properties": {name: {} for name in members}}
    yield stub


def _outer_names(schema: object) -> Iterator[str]:
    """Yield the names of the shared schemas that apply to the same value as this schema."""
    waiting = [schema]
    while waiting:
        node = as_object(waiting.pop()) or {}
        yield from referenced_names({"$ref": node.get("$ref")})
        waiting += [part for keyword in IN_PLACE_LISTS for part in as_list(node.get(keyword)) or ()]
