"""The XML form of a schema's values: nodes made from the `xml` keywords of the document, for the XML writer.

Schemas may form cycles, so nodes refer to each other by number.
"""

import re

from gateway.domain.http.plans import XmlKind, XmlNode
from gateway.domain.json_access import Object, as_object
from gateway.openapi.document.json_access import NOTHING, Unusable, is_true_at, list_at, object_at, text_at
from gateway.openapi.document.references import References, ref_tokens
from gateway.openapi.schema.limits import MAX_XML_MERGED, MAX_XML_NODES

_NAME = re.compile(r"[A-Za-z_][\w.-]*", re.ASCII)
_QUALIFIED = re.compile(r"(?:[^\W\d][\w.-]*:)?[^\W\d][\w.-]*")
_KINDS = {kind.value: kind for kind in XmlKind}
_MERGED = ("allOf", "anyOf", "oneOf")


class XmlNodes:
    """The nodes of one body."""

    def __init__(self, references: References) -> None:
        self._references = references
        self._nodes: list[XmlNode] = []
        self._indexes: dict[tuple[int, int], int] = {}
        self._unread: list[tuple[int, Object, Object]] = []

    @property
    def nodes(self) -> tuple[XmlNode, ...]:
        """The nodes read so far."""
        return tuple(self._nodes)

    def add(self, schema: object) -> int | None:
        """Read the schema and its parts; return the number of its node, or None beyond 2,000 nodes."""
        index = self._node_index(schema)
        while self._unread:
            key, node, target = self._unread.pop()
            self._nodes[key] = self._read(node, target)
        return index

    def root_name(self, schema: object) -> str:
        """Return the name of the root element: `xml.name`, else the name of its component or its title, else `root`."""
        node = as_object(schema) or NOTHING
        named = _name_at(self._xml(node, self._follow(node)), "name")
        if named is not None:
            return named
        ref = node.get("$ref")
        tokens = ref_tokens(ref) if isinstance(ref, str) else []
        last = tokens[-1] if tokens else text_at(node, "title") or ""
        return last if _NAME.fullmatch(last) else "root"

    def _node_index(self, schema: object) -> int | None:
        node = as_object(schema) or NOTHING
        target = self._follow(node)
        key = (id(target), id(node.get("xml")) if "$ref" in node else 0)
        if key not in self._indexes:
            if len(self._nodes) >= MAX_XML_NODES:
                return None
            self._indexes[key] = len(self._nodes)
            self._unread.append((len(self._nodes), node, target))
            self._nodes.append(XmlNode())
        return self._indexes[key]

    def _read(self, node: Object, target: Object) -> XmlNode:
        xml = self._xml(node, target)
        merged = self._merged(target)
        properties: dict[str, object] = {}
        for source in reversed(merged):  # the nearest wins
            properties |= object_at(source, "properties")
        items = next((source["items"] for source in merged if "items" in source), None)
        others = next((source.get("additionalProperties") for source in merged), None)
        members = [(name, self._node_index(part)) for name, part in properties.items()]
        kind = _KINDS.get(str(xml.get("nodeType", "")))
        is_list = items is not None
        return XmlNode(
            kind=XmlKind.ATTRIBUTE if is_true_at(xml, "attribute") else kind or XmlKind.ELEMENT,
            name=_name_at(xml, "name"),
            namespace=text_at(xml, "namespace"),
            prefix=_name_at(xml, "prefix"),
            is_wrapped=is_true_at(xml, "wrapped") or (is_list and kind is XmlKind.ELEMENT),
            members=tuple((name, index) for name, index in members if index is not None),
            items=self._node_index(items) if is_list else None,
            others=self._node_index(others) if as_object(others) else None,
        )

    def _follow(self, node: Object) -> Object:
        try:
            return self._references.follow(node, "a schema")
        except Unusable:
            return NOTHING

    def _xml(self, node: Object, target: Object) -> Object:
        """The `xml` of the schema, or of the first of its merged parts that has one."""
        for source in (node, *self._merged(target)):
            if "xml" in source:
                return object_at(source, "xml")
        return NOTHING

    def _merged(self, target: Object) -> list[Object]:
        """The schema and its `allOf`, `anyOf` and `oneOf` branches, nearest first; at most 50."""
        found = [target]
        seen = {id(target)}
        for source in found:
            for part in (part for key in _MERGED for part in list_at(source, key)):
                inner = self._follow(as_object(part) or NOTHING)
                if id(inner) not in seen and len(found) < MAX_XML_MERGED:
                    seen.add(id(inner))
                    found.append(inner)
        return found


def _name_at(xml: Object, key: str) -> str | None:
    """The name under the key if XML allows it, with the prefix that some documents include; else None."""
    text = text_at(xml, key)
    return text if text is not None and _QUALIFIED.fullmatch(text) else None
