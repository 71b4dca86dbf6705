"""Random schemas with every keyword in every form that a dialect gives it, and in forms that none does; random values.

A seed makes one schema, so that a generated test can draw seeds: `RandomSchemas(Random(seed))`.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final

NAMES: Final = ("a", "b", "c", "kind")
TYPES: Final = ("string", "number", "integer", "boolean", "object", "array", "null")
PATTERNS: Final = ("^a", "[0-9]+$", "(?=x)y", "(a)\\1", "[", "^\\p{L}*$", "a{2,900}")
FORMATS: Final = ("date-time", "date", "email", "uri", "uuid", "int64", "byte", "binary", "regex", "unheard-of")
DIALECTS: Final = (
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-07/schema#",
    "http://json-schema.org/draft-04/schema#",
)
_SCALARS: Final[Sequence[Any]] = (
    *(None, True, False, 0, 1, -1, 5, 2**53 + 1, 10**30, 0.5, -0.0, 1e300, 1.0),
    *("", "a", "b", "5", "true", "null", '{"a":1}', "[1,2]", "é\U0001f600", "a" * 40, "2026-03-04T05:06:07"),
)
_LITERALS: Final[Sequence[Any]] = (None, True, 0, 5, 0.5, "a", "5", {}, {"a": 1}, [1], [[1], "a"])
_ODD: Final[Sequence[Any]] = (None, True, 0, -1, 1.5, "", "x", [], {}, [None], {"a": None}, [[]], [1, 1])
_SMALL = 4
_ODDITY = 0.06


class RandomSchemas:
    """Schemas and values from one source of chance; references lead to the definitions under `definitions_at`.

    `oddity` is the share of keywords with a value of no dialect; with 0 most schemas are valid JSON Schema.
    """

    def __init__(self, chance: Random, *, definitions_at: str = "#/$defs/", oddity: float = _ODDITY) -> None:
        self._chance = chance
        self._definitions_at = definitions_at
        self._oddity = oddity

    def schema(self, depth: int = 3) -> Any:
        """One schema, mostly an object; sometimes a boolean, sometimes no schema at all."""
        chance = self._chance.random()
        if chance < self._oddity / 2:
            return self._pick(_ODD)
        if chance < 0.05 + self._oddity:
            return self._chance.random() < 0.7
        if depth > 0 and chance < 0.25:
            return {**self._reference(), **(self._keywords(depth, 1) if self._chance.random() < 0.3 else {})}
        return self._keywords(depth, self._chance.randint(0, _SMALL))

    def object_schema(self, depth: int = 3) -> dict[str, Any]:
        """An object schema with properties, as tools have."""
        properties = {name: self.schema(depth) for name in NAMES[: self._chance.randint(0, 4)]}
        return {**self._keywords(depth, 1), "type": "object", "properties": properties}

    def definitions(self, depth: int = 2) -> dict[str, Any]:
        """The schemas that references lead to."""
        return {name: self.schema(depth) for name in NAMES[:3]}

    def value(self, depth: int = 3) -> Any:
        """One JSON value."""
        chance = self._chance.random()
        if depth and chance < 0.35:
            return {self._pick(NAMES): self.value(depth - 1) for _ in range(self._chance.randint(0, 3))}
        if depth and chance < 0.55:
            return [self.value(depth - 1) for _ in range(self._chance.randint(0, 3))]
        return self._pick(_SCALARS)

    def _pick(self, values: Sequence[Any]) -> Any:
        return values[self._chance.randrange(len(values))]

    def _keywords(self, depth: int, count: int) -> dict[str, Any]:
        names = [self._pick(_NESTED if depth > 0 and self._chance.random() < 0.5 else _PLAIN) for _ in range(count)]
        if not self._oddity:
            names = [name for name in names if name not in _OFTEN_INVALID]
        made: dict[str, Any] = {}
        if self._chance.random() < 0.5:
            made["type"] = self._type()
        for name in names:
            forms = _FORMS[name]
            form = self._pick(forms) if self._oddity else forms[0]
            made[name] = self._pick(_ODD) if self._chance.random() < self._oddity else form(self, depth)
        return made

    def _reference(self) -> dict[str, Any]:
        target = self._pick(
            ("#", *(self._definitions_at + name for name in NAMES), "#/properties/a", "#a", "b.json#/x", 5)
        )
        keyword = self._pick(("$ref", "$ref", "$ref", "$ref", "$dynamicRef", "$recursiveRef"))
        if not self._oddity or self._chance.random() < 0.8:
            keyword, target = "$ref", self._definitions_at + self._pick(NAMES[:3])
        return {keyword: target}

    def _type(self) -> Any:
        chance = self._chance.random()
        if chance < 0.6:
            return self._pick(TYPES)
        if not self._oddity or chance < 0.95:
            return self._chance.sample(TYPES, self._chance.randint(1, 3))
        return self._pick(("file", "any", [], ["string", "string"], ["string", "any"], {"type": "string"}))

    def names(self, _: int = 0) -> Any:
        return self._chance.sample(NAMES, self._chance.randint(0, 3))

    def values(self, _: int = 0) -> Any:
        return [self.literal() for _ in range(self._chance.randint(0, 4))]

    def several(self, depth: int) -> Any:
        return [self.schema(depth - 1) for _ in range(self._chance.randint(not self._oddity, 3))]

    def map(self, depth: int, keys: Sequence[str] = NAMES) -> Any:
        return {self._pick(keys): self.schema(depth - 1) for _ in range(self._chance.randint(0, 3))}

    def patterned(self, depth: int) -> Any:
        return self.map(depth, self._patterns)

    @property
    def _patterns(self) -> Sequence[str]:
        return PATTERNS if self._oddity else PATTERNS[:2]

    def inner(self, depth: int) -> Any:
        return self.schema(depth - 1)

    def of_names(self, _: int = 0) -> Any:
        return {self._pick(NAMES): self.names() for _ in range(2)}

    def mixed(self, depth: int) -> Any:
        return {"a": self.names(), "b": self.schema(depth - 1)}

    def discriminator(self, _: int = 0) -> Any:
        mapping = {self._pick(("x", "y", "a")): self._pick((self._definitions_at + "a", "b", "#/nowhere", 5))}
        return self._pick(
            (
                {"propertyName": "kind"},
                {"propertyName": "kind", "mapping": mapping},
                {"propertyName": 5},
                {"mapping": mapping},
                "kind",
            )
        )

    def number(self, _: int = 0) -> Any:
        return self._pick((1, 2, 5, 0.5, *((0, -3, 1e300, 10**30) if self._oddity else ())))

    def count(self, _: int = 0) -> Any:
        return self._pick((0, 1, 2, 3, 2.0, 10**6))

    def flag(self, _: int = 0) -> Any:
        return self._chance.random() < 0.6

    def text(self, _: int = 0) -> Any:
        return self._pick(("", "some words", "a", "/x/y", "\u202e"))

    def literal(self, _: int = 0) -> Any:
        return self.value(2) if self._oddity else self._pick(_LITERALS)

    def pattern(self, _: int = 0) -> Any:
        return self._pick(self._patterns)

    def format(self, _: int = 0) -> Any:
        return self._pick(FORMATS)

    def xml(self, _: int = 0) -> Any:
        return self._pick(
            ({"name": "n"}, {"wrapped": True}, {"attribute": True}, {"namespace": 5}, "n", {"prefix": "p"})
        )

    def examples(self, _: int = 0) -> Any:
        return self._pick(([self.value(1)], {"one": {"value": self.value(1)}}, self.value(1)))


_Form = Callable[[RandomSchemas, int], Any]
_random = RandomSchemas
_FORMS: Final[dict[str, Sequence[_Form]]] = {
    **dict.fromkeys(("minimum", "maximum", "multipleOf"), (_random.number,)),
    **dict.fromkeys(("exclusiveMinimum", "exclusiveMaximum"), (_random.number, _random.flag)),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties"), (_random.count,)),
    **dict.fromkeys(("maxProperties", "minContains", "maxContains"), (_random.count,)),
    **dict.fromkeys(("uniqueItems", "nullable", "x-nullable", "readOnly", "writeOnly", "deprecated"), (_random.flag,)),
    **dict.fromkeys(("$recursiveAnchor", "allowEmptyValue", "strict"), (_random.flag,)),
    **dict.fromkeys(("title", "description", "$comment", "$anchor", "$dynamicAnchor", "$id"), (_random.text,)),
    **dict.fromkeys(("contentEncoding", "contentMediaType", "x-mcp-header", "collectionFormat"), (_random.text,)),
    **dict.fromkeys(("default", "example", "const"), (_random.literal,)),
    "enum": (_random.values,),
    "examples": (_random.examples,),
    "required": (_random.names, _random.names, _random.flag),
    "pattern": (_random.pattern,),
    "format": (_random.format,),
    "discriminator": (_random.discriminator,),
    "xml": (_random.xml,),
    "dependentRequired": (_random.of_names,),
    "dependencies": (_random.of_names, _random.map, _random.mixed),
    **dict.fromkeys(("properties", "$defs", "definitions", "dependentSchemas"), (_random.map,)),
    "patternProperties": (_random.patterned,),
    **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), (_random.several,)),
    "items": (_random.inner, _random.inner, _random.several, _random.flag),
    **dict.fromkeys(("additionalProperties", "additionalItems", "unevaluatedItems"), (_random.inner, _random.flag)),
    **dict.fromkeys(("unevaluatedProperties", "contains", "propertyNames"), (_random.inner, _random.flag)),
    **dict.fromkeys(("not", "if", "then", "else", "contentSchema"), (_random.inner,)),
}
_NESTED: Final = tuple(
    name
    for name, forms in _FORMS.items()
    if not {_random.inner, _random.several, _random.map, _random.patterned}.isdisjoint(forms)
)
_OFTEN_INVALID: Final = frozenset(("$id", "$recursiveAnchor", "$anchor", "$dynamicAnchor", "x-mcp-header"))
_PLAIN: Final = tuple(name for name in _FORMS if name not in _NESTED)
