"""Made-up values that conform to a schema: required members, and others as long as there is room."""

from collections.abc import Callable, Mapping
from functools import cache
from random import Random
from typing import Any, cast

from benchmarks.validation.pattern_samples import sample
from gateway.definitions.json_schema.dialects import compile_schema

Schema = Mapping[str, Any]

_MAX_DEPTH = 6
_MAX_HOPS = 20
_ATTEMPTS = 40
_SAMPLES = (
    *("a", "abc", "Abc1", "1", "12", "abcdefgh", "a-b", "a_b", "A1", "ABC", "en", "en-US", "USD", "US", "1.0", "1.0.0"),
    *("2026-03-04", "2026-03-04T05:06:07Z", "05:06:07", "user@example.com", "https://example.com/a", "/a/b"),
    *("12345678-1234-1234-1234-123456789012", "127.0.0.1", "#aabbcc", "0" * 24, "a" * 32, "a" * 40, "a" * 64),
    *("1d", "5m", "10s", "-1", "0.5", "Europe/Berlin", "2026-03-04 05:06:07", "sha256:" + "a" * 64, "+15551234567"),
    *("example.com", "A" * 34, "AC" + "a" * 32),
)


class NoValue(Exception):
    """No value of this schema was found."""


class Bodies:
    """Values of one schema; `room` is the number of optional members and elements, `longest` that of one list."""

    def __init__(self, schema: Schema, chance: Random, *, room: int, longest: int) -> None:
        self._root = schema
        self._chance = chance
        self._room = room
        self._longest = longest

    def make(self) -> Any:
        """Return one value of the schema.

        Raises:
            NoValue: the schema leads nowhere, such as an endless reference.
        """
        return self._value(self._root, 0)

    def _value(self, schema: Any, depth: int) -> Any:
        node = self._flat(schema)
        if depth > 3 * _MAX_DEPTH:
            raise NoValue
        if "const" in node:
            return node["const"]
        if node.get("enum"):
            return self._chance.choice(node["enum"])
        return self._of_type(self._type(node, depth), node, depth)

    def _flat(self, schema: Any) -> dict[str, Any]:
        """The schema with its references, its `allOf` and one branch of each choice merged into it."""
        if schema is False:
            raise NoValue
        merged: dict[str, Any] = {}
        waiting = [schema]
        for _ in range(_MAX_HOPS * 10):
            if not waiting:
                return merged
            part = waiting.pop()
            if not isinstance(part, dict):
                continue
            node = cast("dict[str, Any]", part)
            waiting += node.get("allOf", [])
            if isinstance(ref := node.get("$ref"), str):
                waiting.append(self._target(ref))
            for choice in ("anyOf", "oneOf"):
                if branches := node.get(choice):
                    waiting.append(self._chance.choice(branches))
            _merge(merged, node)
        raise NoValue

    def _target(self, ref: str) -> Any:
        found: Any = self._root
        for token in ref.removeprefix("#").split("/")[1:]:
            found = found[token.replace("~1", "/").replace("~0", "~")]
        return found

    def _type(self, node: Schema, depth: int) -> str:
        named = node.get("type")
        types = [named] if isinstance(named, str) else list(named or ())
        if depth >= _MAX_DEPTH and len(types) > 1:
            types = [one for one in types if one not in {"object", "array"}] or types
        if types:
            return str(self._chance.choice(types))
        if "properties" in node or "required" in node:
            return "object"
        return "array" if "items" in node else "string"

    def _of_type(self, kind: str, node: Schema, depth: int) -> Any:
        match kind:
            case "object":
                return self._object(node, depth)
            case "array":
                return self._array(node, depth)
            case "string":
                return self._string(node)
            case "boolean":
                return self._chance.random() < 0.5
            case "null":
                return None
            case _:
                return self._number(node, is_whole=kind == "integer")

    def _object(self, node: Schema, depth: int) -> dict[str, Any]:
        properties, required = node.get("properties", {}), list(dict.fromkeys(node.get("required", ())))
        optional = [name for name in properties if name not in required]
        self._chance.shuffle(optional)
        made: dict[str, Any] = {}
        for name in required:
            made[name] = self._value(properties.get(name, node.get("additionalProperties", {})), depth + 1)
        for name in optional:
            if depth >= _MAX_DEPTH or self._room <= 0 or self._chance.random() < 0.2:
                continue
            self._room -= 1
            try:
                made[name] = self._value(properties[name], depth + 1)
            except NoValue:
                continue
        others = node.get("additionalProperties")
        for number in range(max(node.get("minProperties", 0) - len(made), not made and isinstance(others, dict))):
            made[f"k{number}"] = self._value(others if isinstance(others, dict) else {}, depth + 1)
        return made

    def _array(self, node: Schema, depth: int) -> list[Any]:
        least = node.get("minItems", 0)
        wanted = max(least, self._chance.randint(0, self._longest) if depth < _MAX_DEPTH and self._room > 0 else 0)
        count = min(wanted, node.get("maxItems", wanted))
        self._room -= count
        before = node.get("prefixItems", ())
        items = [*before[:count], *[node.get("items", {})] * (count - len(before))]
        made = [self._value(item, depth + 1) for item in items]
        return [one for number, one in enumerate(made) if one not in made[:number]] if node.get("uniqueItems") else made

    def _string(self, node: Schema) -> str:
        least: int = node.get("minLength", 0)
        most: int = node.get("maxLength", 10**6)
        pattern = node.get("pattern")
        given = [one for one in node.get("examples", ()) if isinstance(one, str)]
        given += [one for one in (node.get("default"),) if isinstance(one, str)]
        written = sample(pattern) if isinstance(pattern, str) else None
        given += [] if written is None else [written]
        found = [one for one in (*given, *_SAMPLES) if least <= len(one) <= most and _matches(pattern, one)]
        if found:
            return found[0] if found[0] in given else self._chance.choice(found)
        return "x" * min(max(least, 1), most)

    def _number(self, node: Schema, *, is_whole: bool) -> float:
        step = node.get("multipleOf", 1)
        low = node.get("minimum", node.get("exclusiveMinimum", -step) + step if "exclusiveMinimum" in node else 1)
        high = node.get("maximum", node.get("exclusiveMaximum", low + 2 * step) - step)
        value = min(max(1, low), max(high, low))
        value = -(-value // step) * step
        return int(value) if is_whole else value


def _matches(pattern: object, text: str) -> bool:
    return not isinstance(pattern, str) or bool(_compile(pattern).is_valid(text))


@cache
def _compile(pattern: str) -> Any:
    """The pattern in linear time, as the gateway matches it."""
    return compile_schema({"pattern": pattern})


def _merge(merged: dict[str, Any], node: Schema) -> None:
    for keyword, value in node.items():
        if keyword == "properties":
            merged["properties"] = {**merged.get("properties", {}), **value}
        elif keyword == "required":
            merged["required"] = [*merged.get("required", ()), *value]
        elif keyword == "enum" and "enum" in merged:
            merged["enum"] = [one for one in value if one in merged["enum"]] or merged["enum"]
        elif keyword not in {"$ref", "allOf", "anyOf", "oneOf", "$defs"}:
            merged.setdefault(keyword, value)


def conforming(schema: Schema, is_valid: Callable[[Any], bool], seed: int, *, room: int, longest: int = 2) -> Any:
    """Return a value that `is_valid` accepts.

    Raises:
        NoValue: none of some attempts is accepted.
    """
    for attempt in range(_ATTEMPTS):
        chance = Random(f"{seed} {attempt}")
        try:
            made = Bodies(schema, chance, room=max(0, room - attempt), longest=longest).make()
        except (NoValue, KeyError, TypeError, RecursionError):
            continue
        if is_valid(made):
            return made
    raise NoValue
