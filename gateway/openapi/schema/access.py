"""Properties of one direction: input schemas omit `readOnly` properties, output schemas `writeOnly` ones."""

from gateway.domain.json_access import Object, as_object
from gateway.openapi.document.json_access import NOTHING, Unusable, object_at
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
    """True if the property, or the schema that it references, has the keyword with the value `true`."""
    node = as_object(part)
    if node is None:
        return False
    return node.get(keyword) is True or ("$ref" in node and _target(node, references).get(keyword) is True)


def _target(part: object, references: References) -> Object:
    node = as_object(part) or NOTHING
    ref = node.get("$ref")
    if not isinstance(ref, str):
        return node
    try:
        return as_object(references.target(ref)) or NOTHING
    except Unusable:
        return NOTHING
