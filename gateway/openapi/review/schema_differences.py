"""Differences of two JSON Schemas of one tool, by their effect on the accepted values.

An unknown difference is classified as narrower, so none is reported as harmless by mistake. References are followed in
both schemas, each pair of names once. The work is limited; one difference represents everything beyond the limit.
"""

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence

import orjson

from gateway.domain.json_access import as_list, as_object, point, unescape_token
from gateway.domain.updates.source_changes import Difference, DifferenceKind, Impact
from gateway.openapi.review.excerpts import make_difference

Schema = Mapping[str, object]

MAX_STEPS = 20_000
"""Limit on the schemas that are compared for one tool."""

_ANYTHING: Schema = {}
TYPES = frozenset(("null", "boolean", "integer", "number", "string", "array", "object"))
_TEXTS = frozenset(
    ("title", "description", "default", "deprecated", "example", "examples", "$comment", "readOnly", "writeOnly")
)
_LOWEST = frozenset(("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties", "minContains"))
_HIGHEST = frozenset(("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties", "maxContains"))
_CHILDREN = frozenset(
    ("additionalProperties", "items", "contains", "propertyNames", "unevaluatedItems", "unevaluatedProperties")
)
_ALTERNATIVES = frozenset(("anyOf", "oneOf"))
_CONDITIONS = frozenset(("allOf", "prefixItems"))
_COMPARED_KEYWORDS = frozenset(("type", "enum", "const", "required", "properties", "patternProperties"))
_REFERENCE = "#/$defs/"


def compare_schemas(old: Schema, new: Schema, pointer: str) -> Iterator[Difference]:
    """Yield the differences between two root schemas, outer ones first; `pointer` leads to both."""
    return _SchemaComparison(old, new, pointer).run()


class _SchemaComparison:
    """One comparison of two root schemas: a queue of pairs of schemas at the same position."""

    def __init__(self, old: Schema, new: Schema, pointer: str) -> None:
        self._shared = as_object(old.get("$defs")) or {}, as_object(new.get("$defs")) or {}
        before, after = ({key: value for key, value in one.items() if key != "$defs"} for one in (old, new))
        self._queue: deque[tuple[object, object, str]] = deque([(before, after, pointer)])
        self._seen: set[tuple[bytes, ...]] = set()

    def run(self) -> Iterator[Difference]:
        """Yield all differences."""
        for _ in range(MAX_STEPS):
            if not self._queue:
                return
            yield from self._compare(*self._queue.popleft())
        for _, _, pointer in [*self._queue][:1]:
            yield _narrowed(pointer, None, f"more than {MAX_STEPS} schemas; the rest was not compared")

    def _compare(self, old: object, new: object, pointer: str) -> Iterator[Difference]:
        if old is False or new is False:
            if old is not new:
                yield (_widened if old is False else _narrowed)(pointer, old, new)
            return
        before, after = as_object(old) or _ANYTHING, as_object(new) or _ANYTHING
        if "$ref" in before or "$ref" in after:
            yield from self._follow(before, after, pointer)
            return
        yield from _types(before, after, pointer)
        yield from _values(before, after, pointer)
        yield from self._properties(before, after, pointer)
        yield from self._patterns(before, after, f"{pointer}/patternProperties")
        for key in dict.fromkeys((*before, *after)):
            if key not in _COMPARED_KEYWORDS:
                yield from self._keyword(key, before.get(key), after.get(key), f"{pointer}{point(key)}")

    def _follow(self, old: Schema, new: Schema, pointer: str) -> Iterator[Difference]:
        """Compare the targets of references and the keywords beside them."""
        names = old.get("$ref"), new.get("$ref")
        if None not in names and names[0] != names[1]:
            yield make_difference(DifferenceKind.TEXT, Impact.TEXT, f"{pointer}/$ref", *names)
        pair = tuple(_canonical(one) if "$ref" in one else pointer.encode() for one in (old, new))
        if pair not in self._seen:
            self._seen.add(pair)
            self._queue.append((self._resolve(0, old), self._resolve(1, new), pointer))

    def _resolve(self, side: int, schema: Schema) -> object:
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return schema
        name = unescape_token(reference.removeprefix(_REFERENCE).partition("/")[0])
        found = self._shared[side].get(name, _ANYTHING)
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        return {**(as_object(found) or _ANYTHING), **beside} if found is not False else False

    def _keyword(self, key: str, old: object, new: object, pointer: str) -> Iterator[Difference]:
        if key in _CHILDREN:
            self._queue.append((_ANYTHING if old is None else old, _ANYTHING if new is None else new, pointer))
        elif key in _ALTERNATIVES and old is not None and new is not None:
            yield from self._branches(as_list(old) or (), as_list(new) or (), pointer, is_wider=True)
        elif key in _CONDITIONS:
            yield from self._branches(as_list(old) or (), as_list(new) or (), pointer, is_wider=False)
        elif _canonical(old) == _canonical(new):
            return
        elif key in _TEXTS:
            yield make_difference(DifferenceKind.TEXT, Impact.TEXT, pointer, old, new)
        elif key in _LOWEST or key in _HIGHEST:
            yield from _bound(old, new, pointer, is_lowest=key in _LOWEST)
        else:
            is_gone = new is None or (key == "uniqueItems" and new is False)
            yield (_widened if is_gone else _narrowed)(pointer, old, new)

    def _properties(self, old: Schema, new: Schema, pointer: str) -> Iterator[Difference]:
        before, after = as_object(old.get("properties")) or {}, as_object(new.get("properties")) or {}
        was, required = set(as_list(old.get("required")) or ()), set(as_list(new.get("required")) or ())
        for name in dict.fromkeys((*before, *after, *(one for one in required if isinstance(one, str)))):
            place = f"{pointer}{point('properties', name)}"
            if name in required and name not in was:
                shown = (before.get(name), after.get(name, True))
                yield make_difference(DifferenceKind.ARGUMENT_REQUIRED, Impact.BREAKING, place, *shown)
            elif name not in before and name in after:
                yield make_difference(DifferenceKind.ARGUMENT_ADDED, Impact.WIDENING, place, None, after[name])
            elif name in before and name not in after:
                yield make_difference(DifferenceKind.ARGUMENT_REMOVED, Impact.BREAKING, place, before[name], None)
            elif name in was and name not in required:
                yield _widened(place, "required", "optional")
            if name in before and name in after:
                self._queue.append((before[name], after[name], place))

    def _patterns(self, old: Schema, new: Schema, pointer: str) -> Iterator[Difference]:
        before, after = (as_object(one.get("patternProperties")) or {} for one in (old, new))
        for name in dict.fromkeys((*before, *after)):
            self._queue.append((before.get(name, _ANYTHING), after.get(name, _ANYTHING), f"{pointer}{point(name)}"))
            if name not in before or name not in after:
                yield (_narrowed if name in after else _widened)(pointer, *((name, None), (None, name))[name in after])

    def _branches(
        self, old: Sequence[object], new: Sequence[object], pointer: str, *, is_wider: bool
    ) -> Iterator[Difference]:
        """Compare lists of schemas: equal ones with each other, the others in order.

        An additional schema is wider if the schemas are alternatives.
        """
        equal: dict[bytes, list[int]] = defaultdict(list)
        for index in reversed(range(len(new))):
            equal[_canonical(new[index])].append(index)
        before: list[int] = []
        pairs: list[tuple[int, int]] = []
        for index, one in enumerate(old):
            same = equal[_canonical(one)]
            if same:
                pairs.append((index, same.pop()))
            else:
                before.append(index)
        after = sorted(index for left in equal.values() for index in left)
        for first, second in (*pairs, *zip(before, after, strict=False)):
            self._queue.append((old[first], new[second], f"{pointer}/{second}"))
        paired = min(len(before), len(after))
        for index in before[paired:]:
            yield (_narrowed if is_wider else _widened)(f"{pointer}/{index}", old[index], None)
        for index in after[paired:]:
            yield (_widened if is_wider else _narrowed)(f"{pointer}/{index}", None, new[index])


def _types(old: Schema, new: Schema, pointer: str) -> Iterator[Difference]:
    before, after = _types_of(old), _types_of(new)
    if before - after:
        yield _narrowed(f"{pointer}/type", old.get("type"), new.get("type"))
    if after - before:
        yield _widened(f"{pointer}/type", old.get("type"), new.get("type"))


def _types_of(schema: Schema) -> frozenset[str]:
    declared = schema.get("type")
    named = {declared} if isinstance(declared, str) else set(map(str, as_list(declared) or ()))
    found = frozenset(named or TYPES)
    return found | {"integer"} if "number" in found else found


def _values(old: Schema, new: Schema, pointer: str) -> Iterator[Difference]:
    before, after = _allowed(old), _allowed(new)
    key = "enum" if "enum" in old or "enum" in new else "const"
    place = f"{pointer}/{key}"
    if before is None or after is None:
        if before != after:
            yield (_widened if after is None else _narrowed)(place, old.get(key), new.get(key))
        return
    if gone := sorted(before - after):
        yield _narrowed(place, [orjson.loads(one) for one in gone], None)
    if added := sorted(after - before):
        yield _widened(place, None, [orjson.loads(one) for one in added])


def _allowed(schema: Schema) -> frozenset[bytes] | None:
    """The values of `enum` or `const`, encoded; None if neither is set."""
    values = [schema["const"]] if "const" in schema else as_list(schema.get("enum"))
    return None if values is None else frozenset(map(_canonical, values))


def _bound(old: object, new: object, pointer: str, *, is_lowest: bool) -> Iterator[Difference]:
    if isinstance(old, int | float) and isinstance(new, int | float):
        if old != new:
            yield (_narrowed if (new > old) is is_lowest else _widened)(pointer, old, new)
    else:
        yield (_widened if new is None else _narrowed)(pointer, old, new)


def _canonical(value: object) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def _narrowed(pointer: str, old: object, new: object) -> Difference:
    return make_difference(DifferenceKind.ARGUMENT_NARROWED, Impact.BREAKING, pointer, old, new)


def _widened(pointer: str, old: object, new: object) -> Difference:
    return make_difference(DifferenceKind.ARGUMENT_WIDENED, Impact.WIDENING, pointer, old, new)
