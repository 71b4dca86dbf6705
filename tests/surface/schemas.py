"""Differences of JSON Schemas, by what they mean for the sender or the reader of a value.

A schema of requests breaks clients by narrowing, one of responses by widening or by lost members. Schemas are followed
from the operations that use them, so a schema with another name and the same content is no difference of the wire.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from tests.surface.canonical import Json
from tests.surface.differences import ADDED, CHANGED, REMOVED, Difference

MEMBERS, NAMES = "schema members", "schema names"
_UPPER = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
_LOWER = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_TEXTS = frozenset(("description", "title", "examples", "example"))
_BRANCHES = ("anyOf", "oneOf")
_NESTED = ("items", "additionalProperties", "propertyNames")
_MEMBERS = frozenset(("properties", "required"))
_VALUES = frozenset(("type", "enum", "const"))
_HANDLED = frozenset(("default", "$ref", *_BRANCHES, *_UPPER, *_LOWER, *_NESTED)) | _TEXTS | _MEMBERS | _VALUES


@dataclass(frozen=True, slots=True)
class SchemaComparison:
    """A comparison of two sets of schemas; each pair of named schemas is reported once for each direction."""

    before: Json
    after: Json
    seen: set[tuple[str, str, bool]] = field(default_factory=set[tuple[str, str, bool]])

    def compare(self, before: Json, after: Json, place: str, *, is_sent: bool) -> Iterator[Difference]:
        """Yield the differences of two schemas at `place`; `is_sent` is true for what clients send."""
        old, new = _name_of(before), _name_of(after)
        if old is None or new is None:
            whole = self._resolve(before, self.before), self._resolve(after, self.after)
            yield from self._compare_branches(*whole, place, is_sent)
            return
        yield from _compare_texts(before, after, place)
        yield from _compare_default(before, after, place, is_sent)
        if old != new:
            yield Difference(group=NAMES, name=old, change=CHANGED, detail=f"is {new}")
        if (old, new, is_sent) not in self.seen:
            self.seen.add((old, new, is_sent))
            yield from self._compare_branches(self.before[old], self.after[new], old, is_sent)

    def _resolve(self, schema: Json, schemas: Json) -> Json:
        name = _name_of(schema)
        return schema if name is None else {**schemas[name], **{key: schema[key] for key in schema if key != "$ref"}}

    def _compare_branches(self, before: Json, after: Json, place: str, is_sent: bool) -> Iterator[Difference]:
        """Compare the alternatives of a value by type, then what both forms have in common."""
        yield from _compare_texts(before, after, place)
        yield from _compare_default(before, after, place, is_sent)
        old, new = self._branches(before, self.before), self._branches(after, self.after)
        if "anything" not in new:
            for kind in sorted(old.keys() - new.keys()):
                yield _changed(place, f"refuses {kind}" if is_sent else f"is never {kind}", is_breaking=is_sent)
        if "anything" not in old:
            for kind in sorted(new.keys() - old.keys()):
                yield _changed(place, f"accepts {kind}" if is_sent else f"may be {kind}", is_breaking=not is_sent)
        for kind in sorted(old.keys() & new.keys()):
            if any(word in schema for word in _BRANCHES for schema in (before, after)):
                yield from self.compare(old[kind], new[kind], place, is_sent=is_sent)
            else:
                yield from self._compare_values(before, after, place, is_sent)

    def _branches(self, schema: Json, schemas: Json) -> dict[str, Json]:
        """The alternatives of a schema by JSON type; further ones of the same type are numbered."""
        found: dict[str, Json] = {}
        alternatives = next((cast("Sequence[Json]", schema[word]) for word in _BRANCHES if word in schema), [schema])
        for one in alternatives:
            resolved = self._resolve(one, schemas)
            kind = _type_of(resolved)
            named, number = kind, 1
            while named in found:
                number += 1
                named = f"{kind} ({number})"
            found[named] = one
        return found

    def _compare_values(self, before: Json, after: Json, place: str, is_sent: bool) -> Iterator[Difference]:
        yield from _compare_enum(before, after, place, is_sent)
        yield from _compare_bounds(before, after, place, is_sent)
        for word in _NESTED:
            yield from self._compare_nested(word, before, after, place, is_sent)
        yield from self._compare_members(before, after, place, is_sent)
        for word in sorted((before.keys() | after.keys()) - _HANDLED):
            old, new = before.get(word), after.get(word)
            if old != new:
                yield _changed(place, f"{word} {old} → {new}", is_breaking=is_sent and new is not None)

    def _compare_nested(self, word: str, before: Json, after: Json, place: str, is_sent: bool) -> Iterator[Difference]:
        old, new = before.get(word, True), after.get(word, True)
        if old == new:
            return
        if isinstance(old, dict) and isinstance(new, dict):
            inner = f"{place}[]" if word == "items" else f"{place}{{}}"
            yield from self.compare(cast("Json", old), cast("Json", new), inner, is_sent=is_sent)
        else:
            is_narrower = new is not True
            yield _changed(place, f"{word} {old} → {new}", is_breaking=is_sent is is_narrower)

    def _compare_members(self, before: Json, after: Json, place: str, is_sent: bool) -> Iterator[Difference]:
        old, new = before.get("properties", {}), after.get("properties", {})
        required_before, required = set(before.get("required", ())), set(after.get("required", ()))
        for name in sorted(old.keys() | new.keys()):
            member = f"{place}.{name}"
            if name not in new:
                yield Difference(group=MEMBERS, name=member, change=REMOVED, is_breaking=True)
            elif name not in old:
                must = is_sent and name in required
                detail = "required" if must else ""
                yield Difference(group=MEMBERS, name=member, change=ADDED, detail=detail, is_breaking=must)
            else:
                if (name in required) is not (name in required_before):
                    is_now = name in required
                    detail = "is required" if is_now else "is optional"
                    yield _changed(member, detail, is_breaking=is_now is is_sent)
                yield from self.compare(old[name], new[name], member, is_sent=is_sent)


def _changed(place: str, detail: str, *, is_breaking: bool = False) -> Difference:
    return Difference(group=MEMBERS, name=place, change=CHANGED, detail=detail, is_breaking=is_breaking)


def _name_of(schema: Json) -> str | None:
    reference: str | None = schema.get("$ref")
    return None if reference is None else reference.rpartition("/")[2]


def _type_of(schema: Json) -> str:
    return str(schema.get("type", "anything"))


def _compare_texts(before: Json, after: Json, place: str) -> Iterator[Difference]:
    for word in sorted(_TEXTS):
        if before.get(word) != after.get(word):
            yield Difference(
                group="texts", name=place, change=CHANGED, detail=f"{word}: {before.get(word)!r} → {after.get(word)!r}"
            )


def _compare_default(before: Json, after: Json, place: str, is_sent: bool) -> Iterator[Difference]:
    if before.get("default") != after.get("default"):
        yield _changed(place, f"default {before.get('default')} → {after.get('default')}", is_breaking=is_sent)


def _compare_enum(before: Json, after: Json, place: str, is_sent: bool) -> Iterator[Difference]:
    """Report values; a value that responses may have besides is for readers to skip, so it is not breaking."""
    old, new = _values_of(before), _values_of(after)
    if old == new:
        return
    if old is None or new is None:
        yield _changed(place, f"values {old} → {new}", is_breaking=is_sent is (new is not None))
        return
    for value in sorted(map(str, old - new)):
        yield _changed(place, f"has no value {value}", is_breaking=is_sent)
    for value in sorted(map(str, new - old)):
        yield _changed(place, f"has the value {value}")


def _values_of(schema: Json) -> set[Any] | None:
    if "const" in schema:
        return {schema["const"]}
    return set(schema["enum"]) if "enum" in schema else None


def _compare_bounds(before: Json, after: Json, place: str, is_sent: bool) -> Iterator[Difference]:
    for words, sign in ((_UPPER, 1), (_LOWER, -1)):
        for word in words:
            old, new = before.get(word), after.get(word)
            if old != new:
                is_narrower = new is not None and (old is None or sign * new < sign * old)
                yield _changed(place, f"{word} {old} → {new}", is_breaking=is_sent and is_narrower)
