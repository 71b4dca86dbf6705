"""Tree of all subschemas of a schema: positions, applied values and references. Read once; size and depth are bounded.

The keywords of 2020-12, 2019-09 and draft-07 are read together. A keyword that is unknown to the dialect only makes the
tree larger than necessary.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TypeAlias
from urllib.parse import unquote

from gateway.definitions.json_schema.limits import MAX_SCHEMA_DEPTH, MAX_SCHEMAS
from gateway.domain.json_access import Object, as_list, as_object, point

NodePath: TypeAlias = tuple[str | int, ...]


class Reach(Enum):
    """The value that a subschema applies to."""

    HERE = auto()
    """The value of the containing schema."""
    PART = auto()
    """One named member or element of that value."""
    PARTS = auto()
    """Any member or element of that value."""
    NOTHING = auto()
    """No value, unless a reference names the subschema."""


_SINGLE_SCHEMAS: Mapping[str, Reach] = {
    **dict.fromkeys(("not", "if", "then", "else"), Reach.HERE),
    **dict.fromkeys(
        (
            "additionalItems",
            "additionalProperties",
            "contains",
            "items",
            "propertyNames",
            "unevaluatedItems",
            "unevaluatedProperties",
        ),
        Reach.PARTS,
    ),
    "contentSchema": Reach.NOTHING,
}
_SCHEMA_LISTS: Mapping[str, Reach] = {
    **dict.fromkeys(("allOf", "anyOf", "oneOf"), Reach.HERE),
    **dict.fromkeys(("items", "prefixItems"), Reach.PART),
}
_SCHEMA_MAPS: Mapping[str, Reach] = {
    "$defs": Reach.NOTHING,
    "definitions": Reach.NOTHING,
    "dependencies": Reach.HERE,
    "dependentSchemas": Reach.HERE,
    "patternProperties": Reach.PARTS,
    "properties": Reach.PART,
}
REFERRING = ("$ref", "$dynamicRef", "$recursiveRef")
_ANCHORING = ("$anchor", "$dynamicAnchor")


@dataclass(frozen=True, slots=True)
class SchemaEdge:
    """An edge to a subschema: its reach, its part (a property's name, an element's index) and its number."""

    reach: Reach
    part: str | int | None
    target: int


@dataclass(slots=True)
class SchemaNode:
    """One schema: its position, its keywords (none for `true` and `false`), its subschemas and its references."""

    path: NodePath
    schema: Object
    edges: list[SchemaEdge] = field(default_factory=list[SchemaEdge])
    refs: list[int] = field(default_factory=list[int])
    targets: dict[str, int] = field(default_factory=dict[str, int])
    """The numbers in `refs`, by the keyword of the reference."""


def types_of(schema: Object) -> Sequence[str]:
    """Return the types that a schema names, as one or as a list; none if it names no type."""
    named = schema.get("type")
    return [one for one in as_list(named) or (named,) if isinstance(one, str)]


class TooLarge(Exception):
    """A schema with too many subschemas, or nested too deeply; the message is the reason."""

    def __init__(self, reason: str, path: NodePath) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path = path


class SchemaTree:
    """A schema and all its subschemas, by number; number 0 is the schema itself."""

    def __init__(self, schema: object, *, limit: int = MAX_SCHEMAS) -> None:
        """Read the schema.

        Raises:
            TooLarge: the schema has too many subschemas, or they are nested too deeply.
        """
        self._limit = limit
        self.nodes: list[SchemaNode] = []
        self._numbers: dict[str, int] = {}
        self._anchors: dict[str, int] = {}
        self.unresolved: list[tuple[NodePath, str]] = []
        self._read(schema)
        self._link()

    @property
    def has_references(self) -> bool:
        """True if any schema refers to another."""
        return any(node.refs for node in self.nodes)

    def _read(self, schema: object) -> None:
        self._add((), schema)
        position = 0
        while position < len(self.nodes):
            node = self.nodes[position]
            for reach, part, path, child in _inside(node):
                node.edges.append(SchemaEdge(reach, part, self._add(path, child)))
            position += 1

    def _add(self, path: NodePath, schema: object) -> int:
        number = len(self.nodes)
        if number >= self._limit:
            raise TooLarge(f"it has more than {self._limit} schemas", ())
        if len(path) > 2 * MAX_SCHEMA_DEPTH:
            raise TooLarge(f"schemas are nested more than {MAX_SCHEMA_DEPTH} deep", path)
        node = SchemaNode(path, as_object(schema) or {})
        self.nodes.append(node)
        self._numbers[point(*path)] = number
        for keyword in _ANCHORING:
            anchor = node.schema.get(keyword)
            if isinstance(anchor, str):
                self._anchors.setdefault(anchor, number)
        name = node.schema.get("$id")
        if path and isinstance(name, str) and name.startswith("#"):  # an anchor in draft-07
            self._anchors.setdefault(name[1:], number)
        return number

    def _link(self) -> None:
        for node in self.nodes:
            for keyword in REFERRING:
                ref = node.schema.get(keyword)
                if ref is None:
                    continue
                target = self._resolve(ref)
                if target is None:
                    self.unresolved.append(((*node.path, keyword), str(ref)))
                else:
                    node.refs.append(target)
                    node.targets[keyword] = target

    def _resolve(self, ref: object) -> int | None:
        if not isinstance(ref, str) or not ref.startswith("#"):
            return None
        fragment = unquote(ref[1:])
        return self._numbers.get(fragment) if not fragment or fragment[0] == "/" else self._anchors.get(fragment)


def _inside(node: SchemaNode) -> Iterator[tuple[Reach, str | int | None, NodePath, object]]:
    """Return reach, part, position and schema of each direct subschema."""
    for keyword, value in node.schema.items():
        path = (*node.path, keyword)
        elements, members = as_list(value), as_object(value)
        if keyword in _SCHEMA_LISTS and elements is not None:
            reach = _SCHEMA_LISTS[keyword]
            for index, schema in enumerate(elements):
                yield reach, index if reach is Reach.PART else None, (*path, index), schema
        elif keyword in _SINGLE_SCHEMAS and (members is not None or isinstance(value, bool)):
            yield _SINGLE_SCHEMAS[keyword], None, path, value
        elif keyword in _SCHEMA_MAPS and members is not None:
            reach = _SCHEMA_MAPS[keyword]
            for name, schema in members.items():
                if as_list(schema) is None:  # `dependencies` may list names instead
                    yield reach, name if reach is Reach.PART else None, (*path, name), schema
