"""Differences of two JSON Schemas of one tool, by their effect on the accepted values.

An unknown difference is classified as narrower, so none is reported as harmless by mistake. References are followed in
both schemas, each pair of names once. Keywords beside a reference restrict its target further, so the two are compared
separately. The work is limited; one difference represents everything beyond the limit.
"""

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence

import orjson

from gateway.domain.json_access import as_list, as_object, point, unescape_token
from gateway.domain.updates.source_changes import Difference, DifferenceKind, Impact
from gateway.openapi.review.excerpts import make_difference
from gateway.openapi.review.limits import MAX_STEPS
from gateway.openapi.schema.definition_names import referenced_names

Schema = Mapping[str, object]


_ANYTHING: Schema = {}
TYPES = frozenset(("null", "boolean", "integer", "number", "string", "array", "object"))
_TEXTS = frozenset(
    ("title", "description", "default", "deprecated", "example", "examples", "$comment", "readOnly", "writeOnly")
)
_LOWEST = frozenset(("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties", "minContains"))
_HIGHEST = frozenset(("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties", "maxContains"))
_CHILDREN = frozenset(
    ("additionalProperties", "contains", "propertyNames", "unevaluatedItems", "unevaluatedProperties")
)
_ALTERNATIVES = frozenset(("anyOf", "oneOf"))
_EVALUATING = frozenset(
    ("anyOf", "oneOf", "if", "then", "else", "dependentSchemas", "contains", "additionalProperties")
)
"""Keywords whose removal leaves members unevaluated, which `unevaluatedProperties` or `unevaluatedItems` may refuse."""

_COMPARED_KEYWORDS = frozenset(
    ("type", "enum", "const", "required", "properties", "patternProperties", "items", "prefixItems")
)
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
        self._seen: set[tuple[object, ...]] = set()
        text = orjson.dumps(new)
        self._is_closed = b'"unevaluated' in text
        self._is_counted = b'"maxContains"' in text  # a wider `contains` counts more items
        self._is_shared_changed = _canonical(self._shared[0]) != _canonical(self._shared[1])

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
        yield from self._items(before, after, pointer)
        for key in dict.fromkeys((*before, *after)):
            if key not in _COMPARED_KEYWORDS:
                yield from self._keyword(key, before.get(key), after.get(key), f"{pointer}{point(key)}")

    def _follow(self, old: Schema, new: Schema, pointer: str) -> Iterator[Difference]:
        """Compare the targets of references and the keywords beside them."""
        names = old.get("$ref"), new.get("$ref")
        if None in names:  # the same pointer may lead to other inline schemas, and to other keywords beside a reference
            key = (pointer, _canonical(old), _canonical(new))
            self._queue_once(self._conjunction(0, old), self._conjunction(1, new), pointer, key=key)
            return
        if names[0] != names[1]:
            yield make_difference(DifferenceKind.TEXT, Impact.TEXT, f"{pointer}/$ref", old=names[0], new=names[1])
        targets = self._target(0, old), self._target(1, new)
        beside = _beside(old), _beside(new)
        if any(beside):
            before = _with_known(beside[0], beside[1], targets[0])
            after = _with_known(beside[1], beside[0], targets[1])
            self._queue.append((before, after, pointer))
        self._queue_once(*targets, pointer, key=names)

    def _queue_once(self, old: object, new: object, pointer: str, *, key: tuple[object, ...]) -> None:
        if key not in self._seen:
            self._seen.add(key)
            self._queue.append((old, new, pointer))

    def _target(self, side: int, schema: Schema) -> object:
        name = unescape_token(str(schema["$ref"]).removeprefix(_REFERENCE).partition("/")[0])
        return self._shared[side].get(name, _ANYTHING)

    def _conjunction(self, side: int, schema: Schema) -> object:
        """The schema with its reference resolved, if it has one."""
        if "$ref" not in schema:
            return schema
        found, beside = self._target(side, schema), _beside(schema)
        target = as_object(found)
        if not beside or target is None:
            return found if not beside else {"allOf": [found, beside]}
        return {**target, **beside} if beside.keys() <= _TEXTS else {"allOf": [target, beside]}

    def _keyword(self, key: str, old: object, new: object, pointer: str) -> Iterator[Difference]:
        if new is None and self._is_closed and key in _EVALUATING:
            yield _narrowed(pointer, old, new)
        elif key == "contains" and (old is None or new is None):
            yield (_narrowed if old is None else _widened)(pointer, old, new)
        elif key in _CHILDREN and not (key == "contains" and self._is_counted):
            self._queue.append((_ANYTHING if old is None else old, _ANYTHING if new is None else new, pointer))
        elif key in _ALTERNATIVES and old is not None and new is not None:
            yield from self._branches(as_list(old) or (), as_list(new) or (), pointer, is_wider=True)
        elif key == "allOf":
            yield from self._branches(as_list(old) or (), as_list(new) or (), pointer, is_wider=False)
        elif _canonical(old) == _canonical(new):
            if self._is_shared_changed and any(referenced_names(new)):
                yield _narrowed(pointer, None, "refers to schemas that differ")
        elif key in _TEXTS:
            yield make_difference(DifferenceKind.TEXT, Impact.TEXT, pointer, old=old, new=new)
        elif key in _LOWEST or key in _HIGHEST:
            yield from _bound(old, new, pointer, is_lowest=key in _LOWEST)
        else:
            is_gone = new is None or (key == "uniqueItems" and new is False)
            yield (_widened if is_gone else _narrowed)(pointer, old, new)

    def _items(self, old: Schema, new: Schema, pointer: str) -> Iterator[Difference]:
        """Compare the schemas of items by position; those after the last position of a list have `items`."""
        rest = old.get("items", _ANYTHING), new.get("items", _ANYTHING)
        lists = tuple(as_list(one.get("prefixItems")) or () for one in (old, new))
        for index in range(max(map(len, lists))):
            pair = [own[index] if index < len(own) else other for own, other in zip(lists, rest, strict=True)]
            self._queue.append((pair[0], pair[1], f"{pointer}/prefixItems/{index}"))
        if "items" in old or "items" in new:
            self._queue.append((*rest, f"{pointer}/items"))
        if self._is_closed and (len(lists[1]) < len(lists[0]) or ("items" in old and "items" not in new)):
            yield _narrowed(f"{pointer}/items", old.get("prefixItems", rest[0]), new.get("prefixItems"))

    def _properties(self, old: Schema, new: Schema, pointer: str) -> Iterator[Difference]:
        before, after = as_object(old.get("properties")) or {}, as_object(new.get("properties")) or {}
        was, required = set(as_list(old.get("required")) or ()), set(as_list(new.get("required")) or ())
        for name in dict.fromkeys((*before, *after, *(one for one in required if isinstance(one, str)))):
            place = f"{pointer}{point('properties', name)}"
            if name in required and name not in was:
                shown = ("optional", "required") if name in before else (None, after.get(name, True))
                yield make_difference(
                    DifferenceKind.ARGUMENT_REQUIRED, Impact.BREAKING, place, old=shown[0], new=shown[1]
                )
            elif name not in before and name in after:
                yield make_difference(DifferenceKind.ARGUMENT_ADDED, Impact.WIDENING, place, old=None, new=after[name])
            elif name in before and name not in after:
                yield make_difference(
                    DifferenceKind.ARGUMENT_REMOVED, Impact.BREAKING, place, old=before[name], new=None
                )
            elif name in was and name not in required:
                yield _widened(place, "required", "optional")
            if name in before and name in after:
                self._queue.append((before[name], after[name], place))

    def _patterns(self, old: Schema, new: Schema, pointer: str) -> Iterator[Difference]:
        before, after = (as_object(one.get("patternProperties")) or {} for one in (old, new))
        is_closed = self._is_closed or new.get("additionalProperties", True) not in (True, _ANYTHING)
        for name in dict.fromkeys((*before, *after)):
            self._queue.append((before.get(name, _ANYTHING), after.get(name, _ANYTHING), f"{pointer}{point(name)}"))
            if name not in before or name not in after:
                is_narrower = name in after or is_closed
                yield (_narrowed if is_narrower else _widened)(pointer, *((name, None), (None, name))[name in after])

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
            is_narrower = is_wider or self._is_closed
            yield (_narrowed if is_narrower else _widened)(f"{pointer}/{index}", old[index], None)
        for index in after[paired:]:
            yield (_widened if is_wider else _narrowed)(f"{pointer}/{index}", None, new[index])


def _beside(schema: Schema) -> dict[str, object]:
    return {key: value for key, value in schema.items() if key != "$ref"}


def _with_known(schema: dict[str, object], other: Schema, target: object) -> Schema:
    """Add the properties of `other` that the target declares, so that they count as restricted instead of added."""
    own, known = as_object(schema.get("properties")) or {}, as_object((as_object(target) or {}).get("properties")) or {}
    missing = [name for name in as_object(other.get("properties")) or {} if name in known and name not in own]
    return {**schema, "properties": {**own, **dict.fromkeys(missing, True)}} if missing else schema


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
    """The values that `enum` and `const` allow, encoded; None if neither is set."""
    lists = [[schema["const"]] if "const" in schema else None, as_list(schema.get("enum"))]
    found = [frozenset(map(_canonical, values)) for values in lists if values is not None]
    return found[0].intersection(*found) if found else None


def _bound(old: object, new: object, pointer: str, *, is_lowest: bool) -> Iterator[Difference]:
    if pointer.endswith("/minContains"):  # the only lower bound with a default other than 0
        old, new = 1 if old is None else old, 1 if new is None else new
    if isinstance(old, int | float) and isinstance(new, int | float):
        if old != new:
            yield (_narrowed if (new > old) is is_lowest else _widened)(pointer, old, new)
    else:
        yield (_widened if new is None else _narrowed)(pointer, old, new)


def _canonical(value: object) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def _narrowed(pointer: str, old: object, new: object) -> Difference:
    return make_difference(DifferenceKind.ARGUMENT_NARROWED, Impact.BREAKING, pointer, old=old, new=new)


def _widened(pointer: str, old: object, new: object) -> Difference:
    return make_difference(DifferenceKind.ARGUMENT_WIDENED, Impact.WIDENING, pointer, old=old, new=new)
