"""Properties of one direction: input schemas omit `readOnly` properties, output schemas `writeOnly` ones."""

from gateway.domain.json_access import Object, as_object
from gateway.openapi.document.json_access import NOTHING, Unusable, list_at, object_at
from gateway.openapi.document.references import References

_MAX_MERGED = 200
_NO_NAMES: frozenset[str] = frozenset()


def hidden_names(node: Object, references: References, keyword: str) -> frozenset[str]:
    """Return the names of properties with this keyword, in this schema or in its `allOf` parts."""
    if "properties" not in node and "allOf" not in node:
        return _NO_NAMES
    names: set[str] = set()
    merged, seen = [node], {id(node)}
    while merged:
        current = merged.pop()
        properties = object_at(current, "properties")
        names.update(name for name, part in properties.items() if is_hidden(part, references, keyword))
        for part in list_at(current, "allOf"):
            target = _target(part, references)
            if id(target) not in seen and len(seen) < _MAX_MERGED:
                seen.add(id(target))
                merged.append(target)
    return frozenset(names)


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
