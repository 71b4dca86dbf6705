"""The translation of a schema to JSON Schema 2020-12, for the requests of a caller or for responses.

Properties of the other direction are omitted. `nullable` and boolean exclusive bounds are translated. Invalid values of
keywords are dropped with a warning. References become `#/$defs/NAME`; the caller adds the definitions.
"""

from collections.abc import Sequence
from typing import Protocol, TypeAlias

import msgspec

from gateway.domain.json_access import Object, as_list, as_object, point
from gateway.openapi.document.json_access import Unusable, list_at, object_at, quote_text
from gateway.openapi.document.plain_text import plain_text
from gateway.openapi.document.references import ExternalReference, References
from gateway.openapi.schema.access import hidden_names, is_hidden
from gateway.openapi.schema.all_of import ClosedParts
from gateway.openapi.schema.branches import BranchDiscriminator, narrow_branches
from gateway.openapi.schema.discriminators import Discriminators
from gateway.openapi.schema.examples import schema_examples
from gateway.openapi.schema.json_types import TYPES, has_type, read_types
from gateway.openapi.schema.keywords import (
    ANNOTATIONS,
    CHILD,
    IN_PLACE,
    IN_PLACE_LISTS,
    complete_types,
    is_accepted,
    is_nullable,
    settle_bounds,
    with_null,
)
from gateway.openapi.schema.limits import MAX_SCHEMA_DEPTH
from gateway.openapi.schema.patterns import Patterns
from gateway.openapi.schema.value_checks import ValueChecks
from gateway.openapi.warnings import Warnings

Schema: TypeAlias = dict[str, object] | bool

_NEGATING = frozenset(("not", "if"))
_PATTERNED = "patternProperties"
_VALUES = frozenset(("enum", "const", "default"))


class Translated(msgspec.Struct, frozen=True, kw_only=True):
    """A translated schema with its references, its counts, and the dropped constraints (`losses`)."""

    schema: Schema
    links: tuple[str, ...] = ()
    """The references in the schema, each once."""
    in_place: tuple[str, ...] = ()
    """The references that apply to the same value, once per occurrence."""
    count: int = 1
    branches: int = 1
    """Number of schemas in it that apply to the same value, without referenced ones."""
    pattern_bytes: int = 0
    """Upper bound on the bytes of its compiled patterns."""
    losses: tuple[str, ...] = ()
    is_loosened: bool = False
    has_values: bool = False
    """True if it has examples, or a default beside references, that are checked later."""
    external: str | None = None


class SchemaDialect(msgspec.Struct, frozen=True, kw_only=True):
    """The properties of the surrounding document that a translation depends on."""

    references: References
    warnings: Warnings
    patterns: Patterns
    subtypes: Discriminators
    has_siblings: bool
    """True if keywords beside `$ref` apply (from OpenAPI 3.1 on)."""
    shows_examples: bool = True
    """True if examples are kept, to be checked and listed."""
    hidden: str = "readOnly"
    """The keyword of omitted properties, which belong to the other direction."""
    values: ValueChecks = msgspec.field(default_factory=ValueChecks)
    closed_parts: ClosedParts = msgspec.field(default_factory=ClosedParts)


class Namer(Protocol):
    """Assigns each referenced schema its name under `$defs`."""

    def name_of(self, ref: str) -> str:
        """Return the name; every call with the same `ref` returns the same name."""
        ...


class _Scope(msgspec.Struct, frozen=True):
    """The context of a schema: `in_place` if it applies to the outermost schema's value, and the hidden properties."""

    in_place: bool = True
    hidden: frozenset[str] = frozenset()


_HERE, _INSIDE = _Scope(), _Scope(in_place=False)


def translate(node: object, where: str, dialect: SchemaDialect, namer: Namer) -> Translated:
    """Translate the schema at a position in the document."""
    walk = _SchemaTranslator(where, dialect, namer)
    schema = walk.schema(node, _HERE)
    return Translated(
        schema=schema,
        links=tuple(walk.links),
        in_place=tuple(walk.in_place),
        count=walk.count,
        branches=walk.branches,
        pattern_bytes=walk.pattern_bytes,
        losses=tuple(walk.losses),
        is_loosened=walk.is_loosened,
        has_values=walk.has_values,
        external=walk.external,
    )


class _SchemaTranslator:
    """One pass over one schema; collects its references, counts and losses."""

    def __init__(self, where: str, dialect: SchemaDialect, namer: Namer) -> None:
        self._where = where
        self._path: list[str] = []
        self._depth = 0
        self._negations = 0
        """Number of `not` and `if` around the schema; there a looser `oneOf` would refuse more."""
        self._dialect = dialect
        self._namer = namer
        self.links: dict[str, None] = {}
        self.in_place: list[str] = []
        self.count = 0
        self.branches = 0
        self.pattern_bytes = 0
        self.losses: dict[str, None] = {}
        self.is_loosened = False
        self.has_values = False
        self.external: str | None = None

    def schema(self, node: object, scope: _Scope) -> Schema:
        """Translate one schema, with the schemas in it."""
        self.count += 1
        self.branches += scope.in_place
        if isinstance(node, bool):
            return node
        if self._depth >= MAX_SCHEMA_DEPTH:
            self._lose(f"schemas are nested more than {MAX_SCHEMA_DEPTH} levels deep")
            return {}
        mapping = as_object(node)
        if mapping is None:
            self._drop("a schema must be an object; anything is accepted instead")
            return {}
        ref = mapping.get("$ref")
        self._depth += 1
        out = self._reference(mapping, ref, scope) if isinstance(ref, str) else self._plain(mapping, scope)
        self._depth -= 1
        return with_null(out) if is_nullable(mapping) else out

    def _drop(self, what: str) -> None:
        self.is_loosened = True
        self._dialect.warnings.add(self._where + point(*self._path), what)

    def _lose(self, reason: str) -> None:
        self.is_loosened = True
        self.losses[f"{reason}; anything is accepted there"] = None

    def _at(self, key: str, node: object, scope: _Scope) -> Schema:
        self._path.append(key)
        schema = self.schema(node, scope)
        self._path.pop()
        return schema

    def _reference(self, node: Object, ref: str, scope: _Scope) -> dict[str, object]:
        if (link := self._link(ref, scope)) is None:
            return {}
        out = self._named(link, scope)
        kept = node if self._dialect.has_siblings else {key: node[key] for key in ANNOTATIONS[:2] if key in node}
        beside = {key: value for key, value in kept.items() if key != "$ref"}
        return out | self._plain(beside, scope) if beside else out

    def _named(self, link: str, scope: _Scope) -> dict[str, object]:
        """The translated reference. If its target has a discriminator, `anyOf` also lists the implied subtypes."""
        here: dict[str, object] = {"$ref": f"#/$defs/{self._namer.name_of(link)}"}
        target = self._dialect.references.target(link)
        subtypes = self._dialect.subtypes.of(link, target)
        # a subtype references its parent in `allOf`; other subtypes are not alternatives there
        if not subtypes or (scope.in_place and f"#{self._where}" in (link, *subtypes)):
            return here
        discriminator = BranchDiscriminator((as_object(target) or {}).get("discriminator"), self._dialect.subtypes)
        branches = [self._subtype(found, discriminator) for ref in subtypes if (found := self._link(ref, scope))]
        return {"anyOf": [here, *branches]}

    def _subtype(self, link: str, discriminator: BranchDiscriminator) -> object:
        """The branch of an implied subtype. The parent accepts any value of the property, so nothing is refused."""
        branch = {"$ref": f"#/$defs/{self._namer.name_of(link)}"}
        values = discriminator.values_of(link)
        return discriminator.narrow(branch, values, is_required=False) if values else branch

    def _link(self, ref: str, scope: _Scope) -> str | None:
        try:
            target = self._dialect.references.target(ref)
        except ExternalReference as outside:
            self.external = self.external or outside.reason
            return None
        except Unusable as missing:
            self._lose(missing.reason)
            return None
        if not isinstance(target, bool) and as_object(target) is None:
            self._lose(f"{quote_text(ref)} is not a schema")
            return None
        link = self._dialect.references.canonical(ref)
        self.is_loosened = self.is_loosened or self._negations > 0
        self.links[link] = None
        if scope.in_place:
            self.in_place.append(link)
        return link

    def _plain(self, node: Object, scope: _Scope) -> dict[str, object]:
        dynamic = node.get("$dynamicRef")
        if isinstance(dynamic, str) and self._dialect.has_siblings:  # one with a single anchor has become `$ref`
            self._lose(f"the dynamic reference {quote_text(dynamic)} does not have a single anchor")
        node = self._opened(node) if "allOf" in node else node
        types = self._types(node)
        out: dict[str, object] = {"type": types[0] if len(types) == 1 else types} if types else {}
        hidden = scope.hidden | hidden_names(node, self._dialect.references, self._dialect.hidden)
        inner = _Scope(scope.in_place, hidden) if hidden else _HERE if scope.in_place else _INSIDE
        for keyword, value in node.items():
            self._keyword(out, keyword, value, inner)
        if ("oneOf" in out or "anyOf" in out) and not self._negations:
            narrow_branches(out, node, self._dialect.subtypes, self._dialect.hidden)
        if _PATTERNED in node and len(object_at(out, _PATTERNED)) < len(object_at(node, _PATTERNED)):
            out.pop("additionalProperties", None)
        for keyword in settle_bounds(out, node):
            self._drop(f"`{keyword}` has an invalid value; dropped")
        if not _VALUES.isdisjoint(node):
            self._settle_values(out, node, types)
        self._settle_required(out, node, hidden)
        if "default" in out and not self._dialect.values.accepts_default(out, allows_null=is_nullable(node)):
            del out["default"]
            self._remark_value("default")
        self.has_values = self.has_values or ("default" in out and bool(self.links))
        complete_types(out, types, is_request=self._dialect.hidden == "readOnly")
        if self._dialect.shows_examples and (found := schema_examples(node)):
            out["examples"] = list(found)
            self.has_values = True
        return out

    def _opened(self, node: Object) -> Object:
        opened = self._dialect.closed_parts.open(node, self._dialect.references)
        if opened is None:
            self._lose("closed schemas are merged too often")
        return opened or {}

    def _keyword(self, out: dict[str, object], keyword: str, value: object, scope: _Scope) -> None:
        if accepted := is_accepted(keyword, value):
            out[keyword] = plain_text(value) if isinstance(value, str) else value
        elif accepted is False:
            self._drop(f"`{keyword}` has an invalid value; dropped")
        elif keyword in CHILD:
            out[keyword] = self._at(keyword, value, _INSIDE)
        elif keyword in IN_PLACE:
            self._negations += keyword in _NEGATING
            out[keyword] = self._at(keyword, value, _HERE if scope.in_place else _INSIDE)
            self._negations -= keyword in _NEGATING
        else:
            self._composed(out, keyword, value, scope)

    def _composed(self, out: dict[str, object], keyword: str, value: object, scope: _Scope) -> None:
        if keyword in IN_PLACE_LISTS:
            self._list(out, keyword, value, scope if keyword == "allOf" else _HERE if scope.in_place else _INSIDE)
        elif keyword == "properties":
            out[keyword] = self._properties(value, scope)
        elif keyword == "items":
            self._items(out, value)
        elif keyword == "prefixItems":
            self._list(out, keyword, value, _INSIDE)
        elif keyword == "pattern":
            self._pattern(out, value)
        elif keyword == "patternProperties":
            self._pattern_properties(out, value)
        elif keyword == "dependentSchemas":
            out[keyword] = {
                name: self._at(name, part, _Scope(scope.in_place)) for name, part in (as_object(value) or {}).items()
            }

    def _list(self, out: dict[str, object], keyword: str, value: object, scope: _Scope) -> None:
        parts = as_list(value)
        if not parts:
            self._drop(f"`{keyword}` must be a list with at least one schema; dropped")
            return
        self._path.append(keyword)
        out[keyword] = [self._at(str(index), part, scope) for index, part in enumerate(parts)]
        self._path.pop()

    def _items(self, out: dict[str, object], value: object) -> None:
        if as_list(value) is None:
            out["items"] = self._at("items", value, _INSIDE)
            return
        if value:
            self._list(out, "prefixItems", value, _INSIDE)
        out["items"] = {}

    def _properties(self, value: object, scope: _Scope) -> dict[str, object]:
        self._path.append("properties")
        found = self._property_map(value)
        out: dict[str, object] = {
            name: self._at(name, part, _INSIDE)
            for name, part in found.items()
            if not is_hidden(part, self._dialect.references, self._dialect.hidden)
        }
        self._path.pop()
        return out

    def _property_map(self, value: object) -> Object:
        mapping = as_object(value)
        if mapping is None:
            self._drop("`properties` must be an object; dropped")
            return {}
        if not isinstance(ref := mapping.get("$ref"), str):
            return mapping
        self._drop("`properties` is a reference; the properties of its target are used")
        try:
            target = as_object(self._dialect.references.target(ref)) or {}
        except Unusable:
            return {}
        return object_at(target, "properties") or {
            name: part for name, part in target.items() if as_object(part) is not None
        }

    def _pattern(self, out: dict[str, object], value: object) -> None:
        if isinstance(value, str) and self._affords(value):
            out["pattern"] = value
        else:
            self._drop("`pattern` cannot be checked in linear time and little memory; dropped")

    def _affords(self, pattern: str) -> bool:
        cost = self._dialect.patterns.cost(pattern)
        self.pattern_bytes += cost or 0
        return cost is not None

    def _pattern_properties(self, out: dict[str, object], value: object) -> None:
        kept: dict[str, object] = {}
        for pattern, part in (as_object(value) or {}).items():
            if self._affords(pattern):
                kept[pattern] = self._at(pattern, part, _INSIDE)
            else:
                self._drop("`patternProperties` has a pattern that cannot be checked in linear time; dropped")
        out["patternProperties"] = kept

    def _types(self, node: Object) -> list[str]:
        value = node.get("type")
        if isinstance(value, str) and value in TYPES:
            return [value]
        if value is None or value == "file":
            return ["string"] if value else []
        types, unusual = read_types(as_list(value) or (value,))
        if unusual is None:
            self._drop("`type` names an unknown type; dropped")
        for name, read in (unusual or {}).items():
            self._dialect.warnings.note(self._where + point(*self._path), f"type {quote_text(name)} is read as {read}")
        return list(types)

    def _settle_values(self, out: dict[str, object], node: Object, types: list[str]) -> None:
        types = [*types, "null"] if types and is_nullable(node) else types
        allowed = self._enum(out, node, types) if "enum" in node else None
        for keyword in filter(node.__contains__, ("const", "default")):
            value = node[keyword]
            if has_type(value, types) and (allowed is None or value in allowed):
                out[keyword] = value
            else:
                self._remark_value(keyword)

    def _remark_value(self, keyword: str) -> None:
        what = f"`{keyword}` does not match its schema; dropped"
        if keyword == "default":
            self._dialect.warnings.add(self._where + point(*self._path), what)
        else:
            self._drop(what)

    def _enum(self, out: dict[str, object], node: Object, types: list[str]) -> Sequence[object] | None:
        named = list_at(node, "enum")
        fitting = [value for value in named if has_type(value, types)]
        if not fitting:
            self._drop("`enum` has no value of the schema's type; dropped")
            return None
        if len(fitting) != len(named):
            self._drop("`enum` has values of another type; they are dropped")
        if is_nullable(node) and None not in fitting:
            fitting.append(None)
        out["enum"] = fitting
        return fitting

    def _settle_required(self, out: dict[str, object], node: Object, hidden: frozenset[str]) -> None:
        if "required" not in node:
            return
        names = as_list(node["required"])
        if names is None or not all(isinstance(name, str) for name in names):
            self._drop("`required` must be a list of names; dropped")
            return
        if kept := [name for name in dict.fromkeys(names) if name not in hidden]:
            out["required"] = kept
