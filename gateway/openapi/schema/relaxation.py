"""Rewriting of a listed schema and all its subschemas: looser, or shorter."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from gateway.domain.json_access import as_list, as_object
from gateway.openapi.schema.keywords import CHILD, IN_PLACE

_Change: TypeAlias = Callable[[dict[str, object]], dict[str, object]]

_WORDS = frozenset(("title", "description", "examples"))
_STRICTER_AFTER_LOSS = frozenset(
    ("not", "if", "then", "else", "unevaluatedItems", "unevaluatedProperties", "maxContains")
)


def relax(schema: object) -> object:
    """Remove the keywords of a schema that become stricter when a part of it becomes looser.

    A looser branch can make a value match two branches of `oneOf`, so `oneOf` becomes `anyOf`. A looser `not` refuses
    more values, so `not` and keywords with a similar effect are removed.
    """
    return _rewrite(schema, _relax)


def shorten(schema: object) -> object:
    """Remove titles, descriptions and examples from a schema."""
    return _rewrite(schema, _shorten)


def forget_patterns(schema: object) -> object:
    """Remove patterns from a schema, and each `additionalProperties` beside `patternProperties`."""
    return _rewrite(schema, _forget_patterns)


def forget_disputed(schema: object) -> object:
    """Remove keywords that validators evaluate differently: patterns, and a `multipleOf` that is not an integer.

    Regular expressions and fractions differ between languages, and a client must not refuse a result that the gateway
    accepted. If a keyword was removed, the schema is also relaxed.
    """
    undisputed = _rewrite(schema, _forget_disputed)
    return undisputed if undisputed == schema else relax(undisputed)


def _forget_disputed(node: dict[str, object]) -> dict[str, object]:
    out = _forget_patterns(node)
    if not isinstance(out.get("multipleOf", 1), int):
        del out["multipleOf"]
    return out


def _relax(node: dict[str, object]) -> dict[str, object]:
    out = {keyword: value for keyword, value in node.items() if keyword not in _STRICTER_AFTER_LOSS}
    if "oneOf" in out:
        choices = out.pop("oneOf")
        if "anyOf" in out:
            out["allOf"] = [*(as_list(out.get("allOf")) or ()), {"anyOf": choices}]
        else:
            out["anyOf"] = choices
    return out


def _shorten(node: dict[str, object]) -> dict[str, object]:
    return {keyword: value for keyword, value in node.items() if keyword not in _WORDS}


def _forget_patterns(node: dict[str, object]) -> dict[str, object]:
    out = {keyword: value for keyword, value in node.items() if keyword not in {"pattern", "patternProperties"}}
    if "patternProperties" in node:
        out.pop("additionalProperties", None)
    return out


def _rewrite(schema: object, change: _Change) -> object:
    node = as_object(schema)
    if node is None:
        return schema
    return change({keyword: _SHAPES.get(keyword, _keep)(value, change) for keyword, value in node.items()})


def _keep(value: object, _: _Change) -> object:
    return value


def _rewrite_map(value: object, change: _Change) -> object:
    return {name: _rewrite(part, change) for name, part in (as_object(value) or {}).items()}


def _rewrite_list(value: object, change: _Change) -> object:
    return [_rewrite(part, change) for part in as_list(value) or ()]


_SHAPES: Mapping[str, Callable[[object, _Change], object]] = {
    **dict.fromkeys(("properties", "patternProperties", "dependentSchemas", "$defs"), _rewrite_map),
    **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), _rewrite_list),
    **dict.fromkeys((*CHILD, *IN_PLACE, "items"), _rewrite),
}
"""The keywords that contain schemas. A property with the name of a keyword is not affected."""
