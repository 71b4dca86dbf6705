"""Rules that widen a schema so that it accepts an example of the same document (decision 49)."""

from typing import Any

from gateway.domain.json_access import as_list
from gateway.openapi.schema.json_types import type_of, types_of
from gateway.openapi.schema.limits import MAX_KEPT_EXAMPLES

_DROPPED = frozenset(
    (
        *("format", "pattern", "minLength", "maxLength", "contentEncoding", "contentMediaType"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        *("minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties"),
        *("additionalProperties", "unevaluatedProperties", "propertyNames"),
    )
)
"""Keywords that are dropped. Of those in `_CLOSING`, only the value `false` is dropped; a schema is kept."""

_CLOSING = frozenset(("additionalProperties", "unevaluatedProperties"))
_SCALARS = frozenset(("string", "number", "integer", "boolean"))
TEXT = "string"


def widen(node: dict[str, object], error: Any, *, is_text: bool) -> bool:
    """Widen the schema so that the violation disappears; False if no rule covers the violated keyword."""
    keyword = str(error.schema_path[-1])
    if keyword not in node:  # an earlier violation of the same value removed it
        return True
    if keyword in _CLOSING and node[keyword] is not False:
        return False
    if keyword in _DROPPED:
        del node[keyword]
        return True
    if keyword in {"enum", "const"}:
        return _values_to_examples(node, keyword)
    if keyword == "type":
        return _add_type(node, type_of(error.instance), is_text=is_text)
    return keyword == "required" and _make_optional(node, str(error.kind.property))


def _values_to_examples(node: dict[str, object], keyword: str) -> bool:
    """Replace `enum` or `const` by `examples`, because the listed values are still typical."""
    values = as_list(node.pop("enum", None)) or (node.pop("const", None),)
    node["examples"] = [*(as_list(node.get("examples")) or ()), *values][:MAX_KEPT_EXAMPLES]
    node.pop(keyword, None)
    return True


def _add_type(node: dict[str, object], found: str, *, is_text: bool) -> bool:
    types = types_of(node)
    if found in types:
        return True
    is_scalar = found in _SCALARS and not _SCALARS.isdisjoint(types)
    if not (found == "null" or is_scalar or (is_text and found == TEXT)):
        return False
    node["type"] = [*types, found]
    return True


def _make_optional(node: dict[str, object], missing: str) -> bool:
    """Remove a property from `required`, because a complete example lacks it."""
    left = [name for name in as_list(node["required"]) or () if name != missing]
    if left:
        node["required"] = left
    else:
        del node["required"]
    return True
