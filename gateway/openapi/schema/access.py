"""Properties of one direction: input schemas omit `readOnly` properties, output schemas `writeOnly` ones."""

from gateway.domain.json_access import Object, as_object
from gateway.openapi.document.json_access import object_at
from gateway.openapi.document.references import References
from gateway.openapi.schema.all_of import merged_schemas

_NO_NAMES: frozenset[str] = frozenset()


def hidden_names(node: Object, references: References, keyword: str) -> frozenset[str]:
    """Return the names of properties with this keyword, in this schema or in its `allOf` parts."""
    if "properties" not in node and "allOf" not in node:
        return _NO_NAMES
    merged = merged_schemas(node, references) if "allOf" in node else (node,)
    return frozenset(
        name
        for schema in merged
        for name, part in object_at(schema, "properties").items()
        if is_hidden(part, references, keyword)
    )


def is_hidden(part: object, references: References, keyword: str) -> bool:
    """True if the property, a schema that it references, or a part of its `allOf` has the keyword, which is `true`."""
    node = as_object(part)
    if node is None or node.get(keyword) is True:
        return node is not None
    is_merged = "$ref" in node or "allOf" in node
    return is_merged and any(schema.get(keyword) is True for schema in merged_schemas(node, references))
