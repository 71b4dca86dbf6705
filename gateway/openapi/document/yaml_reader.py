"""The YAML reader: the YAML 1.2 core schema, read from parser events into JSON values.

Keys are always text (`200:` is "200") and dates stay text. Anchors, aliases, tags outside the core schema and more
than one document are refused. Depth and size are counted while reading, so nothing is built beyond the limits. The
last of equal keys wins, as in JSON.
"""

import math
import re
from dataclasses import dataclass, field
from typing import Protocol

import yaml

from gateway.errors import DocumentTooLarge, Fault, InvalidDocument

_CORE = "tag:yaml.org,2002:"
_SCALAR_TAGS = frozenset(_CORE + kind for kind in ("str", "int", "float", "bool", "null"))
_COLLECTION_TAGS = frozenset(_CORE + kind for kind in ("map", "seq"))
_WORDS: dict[str, object] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NUMBER_STARTS = frozenset("+-.0123456789")
_LONGEST_NUMBER = 300
_INTEGER_BITS = 63


class _Mark(Protocol):
    @property
    def line(self) -> int: ...
    @property
    def column(self) -> int: ...


@dataclass(slots=True)
class _Open:
    """A collection that is being filled."""

    items: dict[str, object] | list[object]
    key: str | None = None


@dataclass(slots=True)
class _Tree:
    """The values read so far and the collections still open."""

    depth_limit: int
    node_limit: int
    nodes: int = 0
    documents: int = 0
    root: object = None
    stack: list[_Open] = field(default_factory=list[_Open])


def read_yaml(text: str, *, depth: int, nodes: int) -> object:
    """Read the one document in the text, within the limits of depth and nodes.

    Raises:
        InvalidDocument: the text is no supported YAML; faults, if any, have line and column if known.
        DocumentTooLarge: it exceeds a limit.
    """
    tree = _Tree(depth_limit=depth, node_limit=nodes)
    try:
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            _take(tree, event)
    except yaml.MarkedYAMLError as error:
        raise _refusal(error.problem or "no valid YAML", error.problem_mark) from error
    except yaml.YAMLError as error:
        raise InvalidDocument(f"The document is no valid YAML: {_first_line(error)}.") from error
    return tree.root


def _first_line(error: yaml.YAMLError) -> str:
    return str(error).split("\n", 1)[0]


def _refusal(problem: str, mark: _Mark | None) -> InvalidDocument:
    fault = _fault(problem, mark)
    place = f" at line {fault.line}, column {fault.column}" if mark is not None else ""
    return InvalidDocument(f"The document is no valid YAML{place}: {problem}.", faults=[fault])


def _fault(problem: str, mark: _Mark | None) -> Fault:
    if mark is None:
        return Fault(pointer="", reason=problem)
    return Fault(pointer="", reason=problem, line=mark.line + 1, column=mark.column + 1)


def _take(tree: _Tree, event: yaml.Event) -> None:
    if isinstance(event, yaml.ScalarEvent):
        _count(tree)
        _put_scalar(tree, event)
    elif isinstance(event, yaml.CollectionStartEvent):
        _count(tree)
        _open(tree, event)
    elif isinstance(event, yaml.CollectionEndEvent):
        tree.stack.pop()
    elif isinstance(event, yaml.AliasEvent):
        raise _refusal("aliases (*name) are not accepted", event.start_mark)
    elif isinstance(event, yaml.DocumentStartEvent):
        tree.documents += 1
        if tree.documents > 1:
            raise _refusal("there is more than one YAML document in the text", event.start_mark)


def _count(tree: _Tree) -> None:
    tree.nodes += 1
    if tree.nodes > tree.node_limit:
        raise DocumentTooLarge(f"The document has more than {tree.node_limit} values.")


def _put_scalar(tree: _Tree, event: yaml.ScalarEvent) -> None:
    if event.anchor is not None:
        raise _refusal("anchors (&name) are not accepted", event.start_mark)
    if tree.stack and isinstance(tree.stack[-1].items, dict) and tree.stack[-1].key is None:
        _check_tag(event)
        tree.stack[-1].key = event.value
        return
    _put(tree, _scalar(event))


def _check_tag(event: yaml.ScalarEvent) -> None:
    if event.tag is not None and event.tag not in _SCALAR_TAGS:
        raise _refusal(f"the tag {event.tag} is not accepted", event.start_mark)


def _scalar(event: yaml.ScalarEvent) -> object:
    tag, text = event.tag, event.value
    _check_tag(event)
    is_plain = event.implicit[0] if tag is None else tag != _CORE + "str"
    return resolve_plain(text) if is_plain else text


def resolve_plain(text: str) -> object:
    """Convert an unquoted scalar by the core schema. Infinity, NaN and numbers over 300 characters stay text."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMBER_STARTS or len(text) > _LONGEST_NUMBER:
        return text
    if _INTEGER.fullmatch(text):
        integer = int(text, 0) if text[:2] in {"0o", "0x"} else int(text)
        if integer.bit_length() <= _INTEGER_BITS:
            return integer
        try:
            return float(integer)
        except OverflowError:
            return text
    return _finite(float(text), text) if _FLOAT.fullmatch(text) else text


def _finite(number: float, text: str) -> float | str:
    return number if math.isfinite(number) else text


def _open(tree: _Tree, event: yaml.CollectionStartEvent) -> None:
    if event.anchor is not None:
        raise _refusal("anchors (&name) are not accepted", event.start_mark)
    if event.tag is not None and event.tag not in _COLLECTION_TAGS:
        raise _refusal(f"the tag {event.tag} is not accepted", event.start_mark)
    if len(tree.stack) >= tree.depth_limit:
        raise _too_deep(tree.depth_limit, event.start_mark)
    if tree.stack and isinstance(tree.stack[-1].items, dict) and tree.stack[-1].key is None:
        raise _refusal("a key has to be a text", event.start_mark)
    items: dict[str, object] | list[object] = {} if isinstance(event, yaml.MappingStartEvent) else []
    _put(tree, items)
    tree.stack.append(_Open(items))


def _too_deep(limit: int, mark: _Mark | None) -> DocumentTooLarge:
    problem = f"nested more than {limit} levels deep"
    return DocumentTooLarge(f"The document is {problem}.", faults=[_fault(problem, mark)])


def _put(tree: _Tree, value: object) -> None:
    if not tree.stack:
        tree.root = value
        return
    top = tree.stack[-1]
    if isinstance(top.items, list):
        top.items.append(value)
    elif top.key is not None:
        top.items[top.key] = value
        top.key = None
