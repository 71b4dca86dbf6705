"""How a listed schema is rewritten as a whole: made looser throughout, or briefer."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from gateway.openapi.document.json_access import as_list, as_object
from gateway.openapi.schema.keywords import CHILD, IN_PLACE

_Change: TypeAlias = Callable[[dict[str, object]], dict[str, object]]

_STRICTER_AFTER_LOSS = frozenset(
    ("not", "if", "then", "else", "unevaluatedItems", "unevaluatedProperties", "maxContains")
)


def relax(schema: object) -> object:
    """The same schema without what turns stricter when a part of it turns looser.

    `oneOf` refuses a value that suddenly fits two branches, `not` one that fits at all: the first becomes `anyOf`,
    what is like the second goes.
    """
    return _rewrite(schema, _relax)


def shorten(schema: object) -> object:
    """The same schema without titles and descriptions."""
    return _rewrite(schema, _shorten)


def forget_patterns(schema: object) -> object:
    """The same schema without patterns, and without what closes an object that they opened."""
    return _rewrite(schema, _forget_patterns)


def forget_disputed(schema: object) -> object:
    """The same schema without what validators judge differently: patterns, and steps that are no whole numbers.

    Each language has regular expressions and fractions of its own, and a client must not refuse what was let through.
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
    return {keyword: value for keyword, value in node.items() if keyword not in {"title", "description"}}


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
"""Where the schemas inside a schema are; a property that is called like a keyword is none."""
