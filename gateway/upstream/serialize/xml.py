"""Writer of XML documents: the plan's nodes define element names, attributes, wrappers and namespaces."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from gateway.domain.http.plans import XmlKind, XmlNode
from gateway.upstream.serialize.limits import MAX_XML_DEPTH
from gateway.upstream.serialize.percent_encoding import Unwritable, is_list, is_object, to_text, write_at

_NAME_START = r"A-Za-z_À-ÖØ-öø-˿Ͱ-ͽͿ-\u1fff\u200c\u200d⁰-\u218fⰀ-\u2fef、-\ud7ff豈-\ufdcfﷰ-\ufffd\U00010000-\U000effff"
_NAME = f"[{_NAME_START}][{_NAME_START}0-9.·̀-ͯ‿⁀-]*"  # compiled by the first use: that takes 25 ms
_ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_TEXT = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"})
_VALUE = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\r": "&#13;", "\n": "&#10;", "\t": "&#9;"}
)
_NIL = ' xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:nil="true"'
_PLAIN = XmlNode()


@dataclass(slots=True)
class _Element:
    """An element under construction: its attributes, content and declared namespaces."""

    attributes: list[str] = field(default_factory=list[str])
    content: list[str] = field(default_factory=list[str])
    declared: set[str] = field(default_factory=set[str])


def xml_writer(nodes: Sequence[XmlNode], root: int, name: str) -> Callable[[object], str]:
    """Return the writer of one document; `name` is the default name of the root element."""
    walk = _XmlWriter(nodes)
    node = nodes[root] if root < len(nodes) else _PLAIN
    outer = node.name or name or "root"

    def write(value: object) -> str:
        element = _Element()
        walk.root(element, node, outer, value)
        return "".join(element.content)

    return write


class _XmlWriter:
    """Stateless writer of values, as described by their nodes."""

    def __init__(self, nodes: Sequence[XmlNode]) -> None:
        self._nodes = nodes
        self._members = [dict(node.members) for node in nodes]
        self._indexes = {id(node): index for index, node in enumerate(nodes)}

    def root(self, parent: _Element, node: XmlNode, name: str, value: object) -> None:
        """Write the single root element."""
        if is_list(value):
            self._open(parent, node, name, lambda inner: self._each(inner, node, name, value, depth=0))
        else:
            self._element(parent, node, name, value, depth=0)

    def _member(self, parent: _Element, node: XmlNode, name: str, value: object, *, depth: int) -> None:
        """Write one property of an element as an attribute, text or child elements."""
        _check_depth(depth)
        called = node.name or name
        if node.kind is XmlKind.ATTRIBUTE:
            self._attribute(parent, node, called, value)
        elif node.kind in {XmlKind.TEXT, XmlKind.CDATA}:
            parent.content.append(_cdata(value) if node.kind is XmlKind.CDATA else _escaped(value))
        elif is_list(value):
            self._list(parent, node, name, value, depth=depth)
        elif node.kind is XmlKind.NONE:
            self._fill(parent, node, value, depth)
        else:
            self._element(parent, node, called, value, depth=depth)

    def _list(self, parent: _Element, node: XmlNode, name: str, value: list[object], *, depth: int) -> None:
        if node.is_wrapped:
            called = node.name or name
            self._open(parent, node, called, lambda inner: self._each(inner, node, called, value, depth=depth))
        else:
            self._each(parent, node, name, value, depth=depth)

    def _each(self, parent: _Element, node: XmlNode, name: str, value: list[object], *, depth: int) -> None:
        item = _PLAIN if node.items is None else self._nodes[node.items]
        _check_depth(depth)
        for index, member in enumerate(value):
            if is_list(member):
                fill = partial(self._each_of, item, name, member, depth=depth)
                write_at(index, self._open, parent, item, item.name or name, fill)
            else:
                write_at(index, partial(self._member, depth=depth + 1), parent, item, name, member)

    def _each_of(self, node: XmlNode, name: str, value: list[object], parent: _Element, *, depth: int) -> None:
        self._each(parent, node, node.name or name, value, depth=depth + 1)

    def _element(self, parent: _Element, node: XmlNode, name: str, value: object, *, depth: int) -> None:
        self._open(parent, node, name, lambda inner: self._fill(inner, node, value, depth))

    def _fill(self, element: _Element, node: XmlNode, value: object, depth: int) -> None:
        if value is None:
            element.attributes.append(_NIL)
        elif is_object(value):
            index = self._indexes.get(id(node))
            members = self._members[index] if index is not None else {}
            for name, item in value.items():
                index = members.get(name, node.others)
                inner = _PLAIN if index is None else self._nodes[index]
                write_at(name, partial(self._member, depth=depth + 1), element, inner, name, item)
        else:
            element.content.append(_escaped(value))

    def _open(self, parent: _Element, node: XmlNode, name: str, fill: Callable[[_Element], None]) -> None:
        tag = _qualified(node.prefix, name)
        element = _Element()
        _declare(element, node)
        fill(element)
        start = f"<{tag}{''.join(element.attributes)}"
        parent.content += [start, ">", *element.content, f"</{tag}>"] if element.content else [start, "/>"]

    def _attribute(self, parent: _Element, node: XmlNode, name: str, value: object) -> None:
        if value is None:
            return
        if is_list(value):
            text = " ".join(_text(member) for member in value if member is not None)
        elif is_object(value):
            raise Unwritable(f"{name!r} is an XML attribute and cannot be an object")
        else:
            text = _text(value)
        if node.prefix is not None:
            _declare(parent, node)
        parent.attributes.append(f' {_qualified(node.prefix, name)}="{text.translate(_VALUE)}"')


def _check_depth(depth: int) -> None:
    if depth > MAX_XML_DEPTH:
        raise Unwritable(f"it is nested more than {MAX_XML_DEPTH} levels deep")


def _declare(element: _Element, node: XmlNode) -> None:
    """Declare the namespace of a node on the element that uses it."""
    if node.namespace is None:
        return
    named = f"xmlns:{_checked(node.prefix)}" if node.prefix else "xmlns"
    if named not in element.declared:
        element.declared.add(named)
        element.attributes.insert(0, f' {named}="{_legal(node.namespace).translate(_VALUE)}"')


def _qualified(prefix: str | None, name: str) -> str:
    if ":" in name and not prefix:  # some documents write the prefix into the name
        prefix, _, name = name.partition(":")
    return f"{_checked(prefix)}:{_checked(name)}" if prefix else _checked(name)


def _checked(name: str | None) -> str:
    if name is None or not re.fullmatch(_NAME, name):
        raise Unwritable("it has a member name that is not a valid XML name")
    return name


def _text(value: object) -> str:
    return _legal(to_text(value))


def _legal(text: str) -> str:
    if _ILLEGAL.search(text):
        raise Unwritable("it has a character that XML does not allow")
    return text


def _escaped(value: object) -> str:
    return "" if value is None else _text(value).translate(_TEXT)


def _cdata(value: object) -> str:
    return "" if value is None else f"<![CDATA[{_text(value).replace(']]>', ']]]]><![CDATA[>')}]]>"
