"""Metered schemas: a schema with a keyword of our own that charges each visit and ends a check at its limit.

`jsonschema-rs` cannot be interrupted. So each subschema `S` becomes `{"if": {KEYWORD: …}, "then": S, "else": false}`.
The keyword subtracts the cost of `S` at the value from what is left of the check (`meter.py`). Once nothing is left, it
fails at each further visit, so that the check ends soon; its result is then not known.

Small subschemas stay as they are; their cost is part of that of the schema around them.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

import msgspec

from gateway.definitions.json_schema.dialects import compile_argument, dialect_of
from gateway.definitions.json_schema.meter import Meter, costs_of
from gateway.definitions.json_schema.tree import NodePath, SchemaNode, SchemaTree
from gateway.domain.json_access import as_list, as_object, point
from gateway.domain.json_text import decode_object

KEYWORD: Final = "x-gateway-meter"

_INNER: Final = "then"
"""Keyword of the original subschema in its metered form: unlike a part of `allOf` it is not visited after a failure."""

_OUTSIDE: Final = ("$schema", "$id", "$anchor", "$dynamicAnchor", "$recursiveAnchor")
"""Keywords that name a schema; they move to the metered form, so that a reference by name is charged too."""


class MeteredSchema:
    """A compiled metered schema. One check runs at a time; a second one in another thread gets no result."""

    def __init__(self, schema: Mapping[str, object], tree: SchemaTree, *, asserts_formats: bool = True) -> None:
        """Compile the schema; `tree` is its tree.

        Raises:
            ValueError: the metered form cannot be compiled.
        """
        meter = self._meter = Meter()
        costs, leaves = costs_of(tree.nodes)
        charges = {cost: meter.charge_of(cost) for cost in set(costs)}  # most subschemas share their cost

        class Keyword:
            """The keyword of one subschema; `number` is its number in the tree."""

            __slots__ = ("validate",)

            def __init__(self, _: object, number: int, __: object) -> None:
                self.validate = charges[costs[number]]

        metered = _MeteredWriting(tree.nodes, leaves).schema()
        self._keywords: dict[str, type] = {KEYWORD: Keyword}
        self._asserts_formats = asserts_formats
        self._compiled = dialect_of(schema).compile(metered, keywords=self._keywords, asserts_formats=asserts_formats)
        self._text = msgspec.json.encode(metered)

    @property
    def schema(self) -> dict[str, Any]:
        """The metered schema; it is stored as JSON, which takes a tenth of the memory."""
        return decode_object(self._text)

    def is_valid(self, instance: object, units: int, *, argument: str | None = None) -> bool | None:
        """True if the instance, or the value of an argument, conforms; None if unknown after so many units of work."""
        with self._meter.lock_now() as is_held:
            if not is_held:
                return None
            compiled = self._compiled if argument is None else self._compile_argument(argument)
            self._meter.start(units)
            is_valid: bool = compiled.is_valid(instance)
            return None if self._meter.is_exhausted else is_valid

    def violations(self, instance: object, copies: int, *, argument: str | None = None) -> Sequence[Any] | None:
        """Return all violations; None if they copy more values than `copies`, or take the time of so many copies."""
        with self._meter.lock_now() as is_held:
            if not is_held:
                return None
            compiled = self._compiled if argument is None else self._compile_argument(argument)
            self._meter.start_collecting(instance, copies)
            found = list(compiled.iter_errors(instance))
            return None if self._meter.is_exhausted else found

    def _compile_argument(self, name: str) -> Any:
        return compile_argument(
            self.schema, name, inside=(_INNER,), keywords=self._keywords, asserts_formats=self._asserts_formats
        )


def unmetered(schema: Mapping[str, object]) -> Mapping[str, object]:
    """Return the subschema of a metered form; any other schema is returned unchanged."""
    is_metered = KEYWORD in (as_object(schema.get("if")) or {})
    return (as_object(schema.get(_INNER)) or {}) if is_metered else schema


class _MeteredWriting:
    """The writing of the metered form of a tree, from its leaves to its root."""

    def __init__(self, nodes: Sequence[SchemaNode], leaves: Sequence[bool]) -> None:
        self._nodes = nodes
        self._leaves = leaves
        self._paths: list[NodePath] = [()] * len(nodes)

    def schema(self) -> dict[str, Any]:
        for number, node in enumerate(self._nodes):
            inside = (*self._paths[number], _INNER)
            for edge in node.edges:
                self._paths[edge.target] = (*inside, *self._place(node, edge.target))
        written: dict[int, dict[str, Any]] = {}
        for number in reversed(range(len(self._nodes))):  # subschemas have higher numbers
            if not self._leaves[number]:
                written[number] = self._write(self._nodes[number], number, written)
        return written[0]

    def _place(self, node: SchemaNode, inner: int) -> NodePath:
        return self._nodes[inner].path[len(node.path) :]

    def _write(self, node: SchemaNode, number: int, written: Mapping[int, object]) -> dict[str, Any]:
        inner: dict[str, Any] = dict(node.schema)
        for edge in node.edges:
            if edge.target in written:
                _put(inner, node, self._place(node, edge.target), written[edge.target])
        for keyword, target in node.targets.items():
            ref = str(inner[keyword])
            if ref == "#" or ref.startswith("#/"):
                inner[keyword] = "#" + quote(point(*self._paths[target]))
        outer: dict[str, Any] = {keyword: inner.pop(keyword) for keyword in _OUTSIDE if keyword in inner}
        return outer | {"if": {KEYWORD: number}, _INNER: inner, "else": False}


def _put(inner: dict[str, Any], node: SchemaNode, place: NodePath, schema: object) -> None:
    """Replace one direct subschema of a copied schema, without a change of the original one."""
    keyword, *rest = place
    name = str(keyword)
    if not rest:
        inner[name] = schema
        return
    if inner[name] is node.schema[name]:
        inner[name] = dict(inner[name]) if as_list(inner[name]) is None else list(inner[name])
    inner[name][rest[0]] = schema
