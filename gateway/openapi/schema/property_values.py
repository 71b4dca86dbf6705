"""The values that a schema of the document allows for one of its properties, as far as the schema lists them.

A list is made by `const` and `enum`, in the property, in the parts of its `allOf`, and in all branches of a choice.
"""

from collections.abc import Callable, Iterator, Sequence

import orjson

from gateway.domain.json_access import Object, as_list
from gateway.openapi.document.json_access import list_at, object_at
from gateway.openapi.document.references import References
from gateway.openapi.schema.all_of import merged_schemas
from gateway.openapi.schema.json_types import is_count, types_of
from gateway.openapi.schema.limits import MAX_CHOICE_LEVELS, MAX_DISCRIMINATOR_STEPS

Values = Sequence[object]
Division = Callable[[Object, str], Values | None]
"""Returns the values that a choice (`anyOf`, `oneOf`) divides by a discriminator with this property."""

_UNCHECKED = frozenset(("pattern", "format", "not", "if"))
_OTHERS = ("additionalProperties", "unevaluatedProperties", "patternProperties")
_STEPS, _STEPS_PER_BRANCH = 300, 50


class TooManySteps(Exception):
    """The schemas of a property are more than its steps."""


class Steps:
    """The number of schemas that may still be read for the discriminators of one document, and the open levels.

    As a context manager, it is one level of choices in choices. Discriminators inside branches share the steps.
    """

    def __init__(self) -> None:
        self._in_all = MAX_DISCRIMINATOR_STEPS
        self._left = 0
        self._levels = 0

    def start(self, branches: int) -> None:
        """Allow as many schemas as a number of branches may have, unless it is inside another discriminator."""
        if self._levels == 0:
            self._left = min(_STEPS + branches * _STEPS_PER_BRANCH, self._in_all)

    def take(self, number: int) -> None:
        """Count schemas that are read.

        Raises:
            TooManySteps: no more may be read.
        """
        self._left -= number
        self._in_all -= number
        if self._left < 0:
            raise TooManySteps

    def __enter__(self) -> None:
        if self._levels >= MAX_CHOICE_LEVELS:
            raise TooManySteps
        self._levels += 1

    def __exit__(self, *_: object) -> None:
        self._levels -= 1


class PropertyValues:
    """The values of one property in the schemas of one document."""

    def __init__(self, name: str, references: References, steps: Steps, divide: Division) -> None:
        self._name = name
        self._references = references
        self._steps = steps
        self._divide = divide

    def listed(self, schema: object) -> Values | None:
        """Return the values that the schema allows for the property; None if it does not list them.

        Null is omitted beside other values, because it selects no branch.
        """
        values = self._listed(schema)
        return None if values is None else [value for value in values if value is not None] or values

    def permits(self, schema: object, value: object) -> bool:
        """True if the schema surely allows the value for the property."""
        with self._steps:
            merged = self._merged(schema)
            declared = [part for part in map(self._declared, merged) if part is not None]
            if not declared:
                return all(part.get(keyword, True) in (True, {}) for part in merged for keyword in _OTHERS)
            return all(self._fits(part, value) for part in declared) and all(
                any(self.permits(branch, value) for branch in branches) for _, _, branches in _choices(merged)
            )

    def _listed(self, schema: object) -> Values | None:
        with self._steps:
            merged = self._merged(schema)
            found: Values | None = None
            for declared in map(self._declared, merged):
                found = found if declared is None else _intersect(found, self._values(declared))
            for part, keyword, branches in _choices(merged):
                divided = self._divide(part, keyword) if "discriminator" in part else None
                found = _intersect(found, divided or _unite([self._listed(branch) for branch in branches]))
            return found

    def _values(self, schema: object) -> Values | None:
        """The values that the schema of the property lists."""
        with self._steps:
            merged = self._merged(schema)
            found: Values | None = None
            for part in merged:
                found = _intersect(found, _own_values(part))
            for _, _, branches in _choices(merged):
                found = _intersect(found, _unite([self._values(branch) for branch in branches]))
            return found

    def _fits(self, schema: object, value: object) -> bool:
        """True if the value surely fits the schema of the property."""
        with self._steps:
            merged = self._merged(schema)
            if not merged:
                return schema is True
            return all(_fits_part(part, value) for part in merged) and all(
                any(self._fits(branch, value) for branch in branches) for _, _, branches in _choices(merged)
            )

    def _declared(self, schema: Object) -> object:
        return object_at(schema, "properties").get(self._name)

    def _merged(self, schema: object) -> Sequence[Object]:
        self._steps.take(1)
        merged = merged_schemas(schema, self._references)
        self._steps.take(len(merged))
        return merged


def _choices(merged: Sequence[Object]) -> Iterator[tuple[Object, str, Sequence[object]]]:
    """Yield each choice: its schema, its keyword and its branches."""
    for part in merged:
        for keyword in ("anyOf", "oneOf"):
            if branches := list_at(part, keyword):
                yield part, keyword, branches


def _own_values(part: Object) -> Values | None:
    return [part["const"]] if "const" in part else as_list(part.get("enum"))


def _fits_part(part: Object, value: object) -> bool:
    types, allowed = types_of(part), _own_values(part)
    if not isinstance(value, str) or (types and "string" not in types) or not _UNCHECKED.isdisjoint(part):
        return False
    shortest, longest = part.get("minLength", 0), part.get("maxLength", len(value))
    is_within = is_count(shortest) and is_count(longest) and shortest <= len(value) <= longest
    return is_within and (allowed is None or value in allowed)


def encode_value(value: object) -> bytes:
    """Return the same bytes for JSON values that are equal, such as 1 and 1.0; other ones than for true."""
    plain = int(value) if isinstance(value, float) and value.is_integer() else value
    return orjson.dumps(plain, option=orjson.OPT_SORT_KEYS, default=str)


def _intersect(found: Values | None, more: Values | None) -> Values | None:
    if found is None or more is None:
        return more if found is None else found
    known = {encode_value(value) for value in more}
    return [value for value in found if encode_value(value) in known]


def _unite(lists: Sequence[Values | None]) -> Values | None:
    known = [values for values in lists if values is not None]
    return [value for values in known for value in values] if len(known) == len(lists) else None
