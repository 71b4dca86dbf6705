"""Coercion: the values that refused arguments can be read as, from a closed list of repairs (docs/tool-schema.md).

The walk follows the schema beside the value. A part that its schema takes as it is stays as it is. For any other part a
repair offers one value; where a choice takes several, each is a reading of its own. The caller checks every reading
against the whole schema and accepts the only valid one. Nothing here decides that a value is valid, so that a part
which the walk does not understand is refused as before.

Work, readings and the bytes of JSON text are limited. All work over the schema or the value is charged.
Numbers keep all their digits.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Final, cast

import msgspec

from gateway.definitions.json_schema.limits import (
    MAX_COERCION_DEPTH,
    MAX_COERCION_HOPS,
    MAX_COERCION_WORK,
    MAX_PARSED_BYTES,
    MAX_READINGS,
)
from gateway.definitions.json_schema.text_values import (
    file_of,
    is_odd_file,
    parse_boolean,
    parse_container,
    parse_number,
)
from gateway.definitions.json_schema.tree import types_of
from gateway.domain.json_access import Object, as_list, as_object, tokens_of

_SCHEMA_WORK: Final = 4
"""Work of following one schema."""

_ABSENT: Final = object()
"""The reading of a null that is left out."""

_SCALARS: Final = (str, int, float, bool)


class _TooMany(Exception):
    """The value can be read in too many ways, or the search takes too much work."""


def readings(schema: Mapping[str, object], arguments: Mapping[str, object]) -> Sequence[dict[str, object]]:
    """Return the values that the arguments can be read as, without the arguments themselves; at most `MAX_READINGS`.

    The result is empty if there are more, or if the search takes too long.
    """
    if is_dummy(schema, arguments):
        return ({},)
    try:
        found = _ReadingWalk(schema).readings((schema,), arguments, 0)
    except _TooMany:
        return ()
    return [cast("dict[str, object]", one) for one in found if one is not arguments]


def is_dummy(schema: Mapping[str, object], arguments: Mapping[str, object]) -> bool:
    """True for one plain argument of a tool that takes none."""
    if schema.get("properties") or schema.get("additionalProperties") is not False or "patternProperties" in schema:
        return False
    return len(arguments) == 1 and all(not isinstance(value, dict | list) or not value for value in arguments.values())


def has_odd_files(value: object) -> bool:
    """True if a part looks like a file whose `base64` is a data URI or lacks its padding; the schema is not asked."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if (members := as_object(part)) is not None:
            if is_odd_file(members):
                return True
            waiting.extend(members.values())
        else:
            waiting.extend(as_list(part) or ())
    return False


class _ReadingWalk:
    """One walk over a schema and a value. Several schemas of one value are given as a sequence."""

    def __init__(self, schema: Mapping[str, object]) -> None:
        self._root = schema
        self._work = MAX_COERCION_WORK
        self._text_bytes = MAX_PARSED_BYTES
        self._listed: dict[int, _ListedValues | None] = {}
        self._required: dict[int, frozenset[str]] = {}

    def _charge(self, work: int) -> None:
        """Count work before it is done.

        Raises:
            _TooMany: it is too much.
        """
        self._work -= work
        if self._work < 0:  # guard: readings-work
            raise _TooMany

    def readings(self, schemas: Iterable[object], value: object, depth: int) -> Sequence[object]:
        """Return what the value can be read as: itself alone if the schemas seem to take it; nothing if none fits."""
        if depth > MAX_COERCION_DEPTH:
            raise _TooMany
        parts = self._parts_of(schemas)
        return () if parts is None else self._choose(*parts, value, depth)

    def _choose(
        self, plain: Sequence[Object], choices: Sequence[Sequence[object]], value: object, depth: int
    ) -> Sequence[object]:
        if not choices:
            return self._local(plain, value, depth)
        if len(plain) > MAX_COERCION_HOPS:  # choices that lead to themselves
            raise _TooMany
        found: list[object] = []
        for branch in choices[0]:
            parts = self._parts_of((branch,))
            if parts is not None:
                found += self._choose((*plain, *parts[0]), (*choices[1:], *parts[1]), value, depth)
        return (value,) if any(one is value for one in found) else self._distinct(found)

    def _parts_of(self, schemas: Iterable[object]) -> tuple[Sequence[Object], Sequence[Sequence[object]]] | None:
        """The schemas with the targets of references and `allOf`, and their choices; None if nothing can conform."""
        plain: list[Object] = []
        choices: list[Sequence[object]] = []
        waiting = list(schemas)
        while waiting:
            self._charge(_SCHEMA_WORK)
            if len(plain) > MAX_COERCION_HOPS:
                raise _TooMany
            part = waiting.pop()
            if part is False:
                return None
            node = as_object(part)
            if node is None:
                continue
            plain.append(node)
            waiting += as_list(node.get("allOf")) or ()
            choices += [branches for key in ("anyOf", "oneOf") if (branches := as_list(node.get(key)))]
            ref = node.get("$ref")
            if isinstance(ref, str) and ref.startswith("#"):
                waiting.append(self._target(ref))
        return plain, choices

    def _target(self, ref: str) -> object:
        self._charge(len(ref) // 4)
        found: object = self._root
        for token in tokens_of(ref[1:]):
            found = (as_object(found) or {}).get(token)
        return found

    def _local(self, plain: Sequence[Object], value: object, depth: int) -> Sequence[object]:
        self._charge(len(plain))
        wanted = self._wanted(plain)
        if _is_file(plain):
            fitting = file_of(value)
            return () if fitting is None else (fitting,)
        if _fits(value, wanted):
            return self._inside(plain, value, depth) if self._is_allowed(value, plain) else ()
        found: list[object] = []
        for candidate in self._repaired(value, wanted or frozenset()):
            if _fits(candidate, wanted) and self._is_allowed(candidate, plain):
                found += self._inside(plain, candidate, depth)
        return self._distinct(found)

    def _repaired(self, value: object, wanted: frozenset[str]) -> Iterator[object]:
        """Offer the repairs of one value; the table of them is in docs/tool-schema.md."""
        one: object = value
        if isinstance(value, str):
            if not wanted.isdisjoint(("integer", "number")):
                yield from parse_number(value, is_whole="number" not in wanted)
            if "boolean" in wanted:
                yield from parse_boolean(value)
            if not wanted.isdisjoint(("object", "array")):
                one = parse_container(value, max_bytes=self._text_bytes)
                self._text_bytes -= len(value) if one is not value else 0
                yield one
        if "array" in wanted and one is not None and not isinstance(one, list):
            yield [one]

    def _inside(self, plain: Sequence[Object], value: object, depth: int) -> Sequence[object]:
        if isinstance(value, dict):
            return self._members(plain, cast("dict[str, object]", value), depth)
        if isinstance(value, list):
            return self._elements(plain, cast("list[object]", value), depth)
        return (value,)

    def _members(self, plain: Sequence[Object], members: dict[str, object], depth: int) -> Sequence[object]:
        self._charge(len(members))
        required = [self._required_of(node) for node in plain]
        if not all(names <= members.keys() for names in required if len(names) <= len(members)):
            return ()
        if any(len(names) > len(members) for names in required) or any(_is_closed_to(node, members) for node in plain):
            return ()
        if not any(_has_members(node) for node in plain) and None not in members.values():
            return (members,)
        names: list[str] = []
        read: list[Sequence[object]] = []
        for name, value in members.items():
            schemas = list(_schemas_of(plain, name))
            found = self.readings(schemas, value, depth + 1) if schemas else (value,)
            if value is None and not found and not any(name in others for others in required):
                found = (_ABSENT,)
            if not found:
                return ()
            if len(found) > 1 or found[0] is not value:
                names.append(name)
                read.append(found)
        if not names:
            return (members,)
        self._charge(len(members) * MAX_READINGS)
        return [
            {
                name: value
                for name, value in {**members, **dict(zip(names, chosen, strict=True))}.items()
                if value is not _ABSENT
            }
            for chosen in _combinations(read)
        ]

    def _elements(self, plain: Sequence[Object], items: list[object], depth: int) -> Sequence[object]:
        if not any("items" in node or "prefixItems" in node for node in plain):
            return (items,)
        self._charge(len(items))
        read: list[Sequence[object]] = []
        for index, item in enumerate(items):
            schemas = list(_schemas_at(plain, index))
            found = self.readings(schemas, item, depth + 1) if schemas else (item,)
            if not found:
                return ()
            read.append(found)
        if all(len(found) == 1 and found[0] is item for found, item in zip(read, items, strict=True)):
            return (items,)
        self._charge(len(items) * MAX_READINGS)
        return [list(chosen) for chosen in _combinations(read)]

    def _wanted(self, plain: Sequence[Object]) -> frozenset[str] | None:
        """The types that all schemas allow; None without a restriction."""
        wanted: frozenset[str] | None = None
        for node in plain:
            listed = self._listed_of(node)
            for types in (types_of(node), () if listed is None else listed.types):
                if types:
                    allowed = frozenset([*types, "integer"] if "number" in types else types)
                    wanted = allowed if wanted is None else wanted & allowed
        return wanted

    def _is_allowed(self, value: object, plain: Sequence[Object]) -> bool:
        """False for a plain value that a constant or a list of values excludes."""
        if not isinstance(value, _SCALARS):
            return True
        listed = [found for node in plain if (found := self._listed_of(node)) is not None]
        return all((isinstance(value, bool), value) in one.scalars for one in listed)

    def _listed_of(self, node: Object) -> "_ListedValues | None":
        """The constant or the list of values of a schema, read once: an enumeration can have thousands."""
        if id(node) not in self._listed:
            values = [node["const"]] if "const" in node else as_list(node.get("enum"))
            self._charge(len(values or ()))
            self._listed[id(node)] = None if values is None else _ListedValues(values)
        return self._listed[id(node)]

    def _required_of(self, node: Object) -> frozenset[str]:
        """The required names of a schema, read once."""
        if id(node) not in self._required:
            names = as_list(node.get("required")) or ()
            self._charge(len(names))
            self._required[id(node)] = frozenset(cast("Sequence[str]", names))
        return self._required[id(node)]

    def _distinct(self, found: Sequence[object]) -> Sequence[object]:
        if len(found) < 2:  # nothing to compare
            return found
        distinct: dict[bytes, object] = {}
        for one in found:
            encoded = msgspec.json.encode(one)
            self._charge(1 + len(encoded) // 500)
            distinct[encoded] = one
        if len(distinct) > MAX_READINGS:
            raise _TooMany
        return list(distinct.values())


class _ListedValues:
    """The values that a schema lists: the plain ones, each with true for a boolean, and the types of all."""

    def __init__(self, values: Sequence[object]) -> None:
        self.scalars = frozenset((isinstance(one, bool), one) for one in values if isinstance(one, _SCALARS))
        self.types = frozenset(name for one in values for name in _types_of(one))


def _combinations(read: Sequence[Sequence[object]]) -> Iterator[tuple[object, ...]]:
    count = 1
    for found in read:
        count *= len(found)
        if count > MAX_READINGS:
            raise _TooMany
    return product(*read)


def _types_of(value: object) -> Sequence[str]:
    match value:
        case bool():
            return ("boolean",)
        case int():
            return ("integer", "number")
        case float():
            return ("number", "integer") if value.is_integer() else ("number",)
        case str():
            return ("string",)
        case None:
            return ("null",)
        case dict():
            return ("object",)
        case _:
            return ("array",)


def _fits(value: object, wanted: frozenset[str] | None) -> bool:
    return wanted is None or not wanted.isdisjoint(_types_of(value))


def _is_closed_to(node: Object, members: Object) -> bool:
    """True if the schema has a closed list of names and the object has another."""
    if node.get("additionalProperties") is not False or "patternProperties" in node:
        return False
    return not members.keys() <= (as_object(node.get("properties")) or {}).keys()


def _has_members(node: Object) -> bool:
    """True if a schema restricts members of an object."""
    return "properties" in node or as_object(node.get("additionalProperties")) is not None


def _schemas_of(plain: Sequence[Object], name: str) -> Iterator[object]:
    for node in plain:
        known = as_object(node.get("properties")) or {}
        if name in known:
            yield known[name]
        elif "patternProperties" not in node and as_object(others := node.get("additionalProperties")) is not None:
            yield others


def _schemas_at(plain: Sequence[Object], index: int) -> Iterator[object]:
    for node in plain:
        listed = as_list(node.get("items"))
        before = as_list(node.get("prefixItems")) or listed or ()
        if index < len(before):
            yield before[index]
        elif listed is None and "items" in node:
            yield node["items"]


def _is_file(plain: Sequence[Object]) -> bool:
    """True for the schema of a file argument of an imported operation."""
    found: Any = next((node["properties"] for node in plain if "properties" in node), None)
    encoded = as_object((as_object(found) or {}).get("base64")) or {}
    return encoded.get("contentEncoding") == "base64"
