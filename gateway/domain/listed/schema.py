"""Input schemas as clients receive them: plain 2020-12 that every known client takes.

The listed schema accepts every value that the stored one accepts, with one exception: an argument that only some
alternatives at the root have is listed as these have it. Calls are validated against the stored schema, and the listed
one depends on nothing else. `client_limits` has the limits and their sources.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gateway.domain.json_access import Object, as_list, as_object
from gateway.domain.listed.limits import MAX_BRANCHES, MAX_DEPTH, MAX_VISITS
from gateway.domain.listed.references import ReferenceTargets

_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_ALTERNATIVES = ("anyOf", "oneOf")
_CONDITIONS = ("not", "if", "then", "else")
_ROOT_REFUSED = frozenset((*_REFERENCES, *_ALTERNATIVES, *_CONDITIONS, "allOf", "dependentSchemas", "enum", "const"))
"""Keywords beside the root's properties for which an API refuses all tools of a request, or does not find them."""

_ANNOTATIONS = frozenset(("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"))
_BACKTRACKING = re.compile(r"\(\?(?!:)|\\[1-9kpP]")


def listed_output_schema(schema: Object) -> Object:
    """Return the listed form of an output schema: unchanged in 2020-12, else looser and in 2020-12."""
    rewriting = _Rewriting(schema)
    return rewriting.whole() if rewriting.is_older else schema


def listed_schema(schema: Object) -> dict[str, Any]:
    """Return the listed form of a stored input schema."""
    return _Rewriting(schema).root()


class _Rewriting:
    """The rewriting of one schema."""

    def __init__(self, schema: Object) -> None:
        self._schema = schema
        dialect = str(schema.get("$schema"))
        self._ignores_siblings = "draft-07" in dialect
        self.is_older = self._ignores_siblings or "2019-09" in dialect
        self._targets = ReferenceTargets(schema)
        self._visits = 0

    def root(self) -> dict[str, Any]:
        """The schema of the arguments, with all properties that any of its alternatives has."""
        schema = self._effective(self._schema)
        plain = {name: value for name, value in schema.items() if name not in _ROOT_REFUSED}
        properties, required = self._arguments(schema, depth=0)
        return self._with_definitions(
            self._node({"type": "object", **plain, "properties": properties, "required": required})
        )

    def whole(self) -> dict[str, Any]:
        """The schema without changes of its root."""
        return self._with_definitions(self._node(self._schema))

    def _with_definitions(self, written: dict[str, Any]) -> dict[str, Any]:
        definitions: dict[str, Any] = {}
        while (found := self._targets.next()) is not None:
            definitions[found[0]] = self._member(found[1])
        return written | ({"$defs": self._targets.in_order(definitions)} if definitions else {})

    def _arguments(self, schema: Object, *, depth: int) -> tuple[dict[str, object], list[str]]:
        """The properties of a schema and of the schemas beside them, and the names that every value has."""
        self._visits += 1
        if self._visits > MAX_VISITS:  # guard: listed-root-bounded
            return {}, []
        schema = self._effective(schema)
        properties, required = dict(as_object(schema.get("properties")) or {}), _names(schema.get("required"))
        if depth == MAX_DEPTH:
            return properties, required
        targets = filter(None, (self._targets.target_of(schema.get(keyword)) for keyword in _REFERENCES))
        for one in (*targets, *_listed(schema, "allOf")):
            more, also_required = self._arguments(one, depth=depth + 1)
            properties, required = more | properties, required + also_required
        possible: dict[str, object] = {}
        conditional = _held(schema, "then", "else") if "if" in schema else ()
        for one in (*conditional, *_members(schema, "dependentSchemas")):
            _join(possible, self._arguments(one, depth=depth + 1)[0])
        for keyword in _ALTERNATIVES:
            branches = [self._arguments(one, depth=depth + 1) for one in _listed(schema, keyword)]
            for more, _ in branches:
                _join(possible, more)
            needed = [names for _, names in branches]
            required += [name for name in (needed or [[]])[0] if all(name in names for names in needed)]
        return properties | {name: one for name, one in possible.items() if name not in properties}, required

    def _effective(self, schema: Object) -> Object:
        """A schema without the keywords that draft-07 ignores beside a reference."""
        if not (self._ignores_siblings and "$ref" in schema):
            return schema
        return {name: value for name, value in schema.items() if name in _ANNOTATIONS or name == "$ref"}

    def _member(self, schema: object) -> dict[str, Any]:
        """A schema where clients expect an object: a boolean becomes the schema that accepts everything."""
        members = as_object(schema)
        return {} if members is None else self._node(members)

    def _node(self, schema: Object) -> dict[str, Any]:
        written: dict[str, Any] = {}
        schema = self._effective(schema)
        for keyword, value in schema.items():
            _WRITERS.get(keyword, _copy)(self, written, keyword, value)
        if as_list(schema.get("items")) is not None and as_object(schema.get("additionalItems")) is not None:
            written["items"] = self._member(schema["additionalItems"])
        if "patternProperties" in schema and "patternProperties" not in written:
            written.pop("additionalProperties", None)  # would apply to what the dropped patterns permit
        types = [one] if isinstance(one := written.get("type"), str) else _names(one)
        if "array" in types:
            written.setdefault("items", {})
        if types and "object" not in types:
            written.pop("properties", None)  # they would apply to objects alone
            written.pop("required", None)
        for name in written.get("required", ()):
            if name not in written.setdefault("properties", {}):
                written["properties"] = written["properties"] | {name: {}}
        return written

    def reference(self, written: dict[str, Any], _: str, value: object) -> None:
        name = self._targets.name_of(value)
        if name is not None:
            written["$ref"] = "#/$defs/" + name.replace("~", "~0").replace("/", "~1")

    def single(self, written: dict[str, Any], keyword: str, value: object) -> None:
        written[keyword] = self._member(value)

    def closed(self, written: dict[str, Any], keyword: str, value: object) -> None:
        """The schema of further members or elements; a converter of Google fails at a boolean."""
        if as_object(value) is not None:
            written[keyword] = self._member(value)

    def items(self, written: dict[str, Any], _: str, value: object) -> None:
        elements = as_list(value)
        if elements is None:
            self.closed(written, "items", value)
        else:
            written["prefixItems"] = [self._member(one) for one in elements]

    def branches(self, written: dict[str, Any], keyword: str, value: object) -> None:
        written[keyword] = [self._member(one) for one in as_list(value) or ()]

    def one_of(self, written: dict[str, Any], _: str, value: object) -> None:
        """`anyOf`: the listed branches are looser than the stored ones, so a value may fit several of them."""
        if "anyOf" not in written:
            self.branches(written, "anyOf", value)

    def members(self, written: dict[str, Any], keyword: str, value: object) -> None:
        found = as_object(value) or {}
        written[keyword] = {name: self._member(one) for name, one in found.items() if one is not False}

    def by_pattern(self, written: dict[str, Any], keyword: str, value: object) -> None:
        found = as_object(value) or {}
        kept = {name: one for name, one in found.items() if not _BACKTRACKING.search(name)}
        if len(kept) == len(found):
            self.members(written, keyword, kept)

    def condition(self, written: dict[str, Any], keyword: str, value: object) -> None:
        """A schema that is not rewritten, because a looser one would refuse more; left out if it has to be."""
        if not self.is_older:
            _copy(self, written, keyword, value)

    def dependencies(self, written: dict[str, Any], _: str, value: object) -> None:
        found = as_object(value) or {}
        schemas = {name: one for name, one in found.items() if as_list(one) is None}
        if len(schemas) < len(found):
            written["dependentRequired"] = {name: one for name, one in found.items() if name not in schemas}
        if schemas:
            self.members(written, "dependentSchemas", schemas)


_Writer = Callable[[_Rewriting, dict[str, Any], str, object], None]


def _copy(_: _Rewriting, written: dict[str, Any], keyword: str, value: object) -> None:
    """Copy a keyword whose value is no schema; LangChain's converter follows each `$ref` that it finds."""
    if not _has_reference(value):
        written[keyword] = value


def _pattern(_: _Rewriting, written: dict[str, Any], keyword: str, value: object) -> None:
    if isinstance(value, str) and not _BACKTRACKING.search(value):
        written[keyword] = value


def _examples(_: _Rewriting, written: dict[str, Any], keyword: str, value: object) -> None:
    kept = [one for one in as_list(value) or () if not _has_reference(one)]
    if kept:
        written[keyword] = kept


def _required(_: _Rewriting, written: dict[str, Any], keyword: str, value: object) -> None:
    if names := _names(value):
        written[keyword] = [*dict.fromkeys(names)]


def _drop(_: _Rewriting, __: dict[str, Any], ___: str, ____: object) -> None:
    """Leave out a keyword."""


_WRITERS: Mapping[str, _Writer] = {
    **dict.fromkeys(_REFERENCES, _Rewriting.reference),
    **dict.fromkeys(("contains", "contentSchema", "propertyNames"), _Rewriting.single),
    "additionalProperties": _Rewriting.closed,
    **dict.fromkeys(("allOf", "anyOf", "prefixItems"), _Rewriting.branches),
    **dict.fromkeys(("properties", "dependentSchemas"), _Rewriting.members),
    **dict.fromkeys(("$schema", "$id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary"), _drop),
    **dict.fromkeys(("$comment", "$defs", "definitions", "unevaluatedItems", "unevaluatedProperties"), _drop),
    **dict.fromkeys(_CONDITIONS, _Rewriting.condition),
    "additionalItems": _drop,
    "dependencies": _Rewriting.dependencies,
    "examples": _examples,
    "items": _Rewriting.items,
    "oneOf": _Rewriting.one_of,
    "pattern": _pattern,
    "patternProperties": _Rewriting.by_pattern,
    "required": _required,
}


def _join(possible: dict[str, object], more: Mapping[str, object]) -> None:
    """Add properties of one alternative; a property that several have accepts what any of them accepts."""
    for name, schema in more.items():
        possible[name] = _either(possible[name], schema) if name in possible else schema


def _either(one: object, other: object) -> object:
    """A schema that accepts what one of two accepts; everything, if it would have too many branches."""
    members = as_object(one)
    known = as_list(members.get("anyOf")) if members is not None and set(members) == {"anyOf"} else None
    branches = [*known] if known is not None else [one]
    if other in branches:
        return one
    return {"anyOf": [*branches, other]} if len(branches) < MAX_BRANCHES else True


def _names(value: object) -> list[str]:
    return [one for one in as_list(value) or () if isinstance(one, str)]


def _held(schema: Object, *keywords: str) -> Iterator[Object]:
    return filter(None, map(as_object, map(schema.get, keywords)))


def _listed(schema: Object, keyword: str) -> Iterator[Object]:
    return filter(None, map(as_object, as_list(schema.get(keyword)) or ()))


def _members(schema: Object, keyword: str) -> Iterator[Object]:
    return filter(None, map(as_object, (as_object(schema.get(keyword)) or {}).values()))


def _has_reference(value: object) -> bool:
    """True if an object in the value has a member `$ref`."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if (members := as_object(one)) is not None:
            if "$ref" in members:
                return True
            waiting += members.values()
        else:
            waiting += as_list(one) or ()
    return False
