"""The YAML reader: the YAML 1.2 core schema, read from the events of libyaml's parser into JSON values (decision 29).

Keys are always text (`200:` is "200") and dates stay text. An alias is the value of its anchor; the value is shared,
but every use counts towards the limits. `<<` merges mappings, as in most readers. Tags outside the core schema and a
second document are refused. Depth and number of values are counted while reading, so nothing is built beyond the
limits. The last of equal keys wins, as in JSON.
"""

import math
import re
from collections.abc import Callable, Sequence
from typing import Protocol, cast

import msgspec
import yaml

from gateway.domain.json_access import Object, as_list, as_object
from gateway.errors import DocumentTooLarge, Fault, InvalidDocument
from gateway.openapi.document.limits import MAX_NUMBER_LENGTH

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
_INTEGER_BITS = 63
_MERGE = "<<"


class _Anchored(msgspec.Struct, frozen=True):
    """The value of an anchor, the number of values in it, and the levels below it."""

    value: object
    nodes: int
    height: int


class _Mark(Protocol):
    @property
    def line(self) -> int: ...
    @property
    def column(self) -> int: ...


def read_yaml(text: str, *, depth: int, nodes: int) -> object:
    """Read the only document of the text, within the limits of depth and nodes.

    Raises:
        InvalidDocument: the text is not valid YAML, or uses an unsupported feature. Its faults, if any, have line and
            column if known.
        DocumentTooLarge: it exceeds a limit.
    """
    try:
        return _EventReader(text, depth, nodes).read()
    except yaml.MarkedYAMLError as error:
        raise _refuse_syntax(error.problem or "syntax error", error.problem_mark) from error
    except yaml.YAMLError as error:
        first_line = str(error).split("\n", 1)[0]
        raise InvalidDocument(f"The document is not valid YAML: {first_line}.") from error


class _EventReader:
    """Builds values from parser events; the recursion is bounded by the depth limit."""

    def __init__(self, text: str, depth: int, nodes: int) -> None:
        # `yaml.parse` would ask whether there is another event, before each one
        self._next = cast("Callable[[], yaml.Event]", yaml.CSafeLoader(text).get_event)
        self._max_depth = depth
        self._max_nodes = nodes
        self._node_count = 0
        self._deepest = 0
        self._anchors: dict[str, _Anchored] = {}

    def read(self) -> object:
        root: object = None
        documents = 0
        while not isinstance(event := self._next(), yaml.StreamEndEvent):
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise _refuse_feature("the text contains more than one YAML document; send one", event.start_mark)
                root = self._value(self._next(), 0)
        return root

    def _value(self, event: yaml.Event, depth: int) -> object:
        if type(event) is yaml.ScalarEvent and event.anchor is None and event.tag is None:  # nearly all values
            self._node_count += 1
            if self._node_count > self._max_nodes:
                self._count(0)  # refuses the document
            return resolve_plain(event.value) if event.implicit[0] else event.value
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, depth)
        anchor: str | None = getattr(event, "anchor", None)
        if anchor is None:
            return self._plain(event, depth)
        before, above = self._node_count, self._deepest
        self._anchors.pop(anchor, None)  # the value of an anchor does not contain an alias of it
        self._deepest = depth - 1
        value = self._plain(event, depth)
        self._anchors[anchor] = _Anchored(value, self._node_count - before, self._deepest - depth)
        self._deepest = max(above, self._deepest)
        return value

    def _alias(self, event: yaml.AliasEvent, depth: int) -> object:
        found = self._anchors.get(event.anchor or "")
        if found is None:  # guard: yaml-anchors
            raise _refuse_feature(f"the alias *{event.anchor} has no anchor before it", event.start_mark)
        self._count(found.nodes)  # guard: yaml-aliases
        self._descend(depth + found.height, event)  # guard: yaml-alias-depth
        return found.value

    def _plain(self, event: yaml.Event, depth: int) -> object:
        self._check(event, depth)
        if isinstance(event, yaml.ScalarEvent):
            is_plain = event.implicit[0] if event.tag is None else event.tag != _CORE + "str"
            return resolve_plain(event.value) if is_plain else event.value
        if isinstance(event, yaml.SequenceStartEvent):
            items: list[object] = []
            while type(event := self._next()) is not yaml.SequenceEndEvent:
                items.append(self._value(event, depth + 1))
            return items
        members: dict[str, object] = {}
        merged: list[Object] = []
        while type(event := self._next()) is not yaml.MappingEndEvent:
            if type(event) is yaml.ScalarEvent and event.anchor is None and event.tag is None:  # nearly all keys
                self._node_count += 1  # compared with the limit for the value
                key = event.value
            else:
                key = self._key(event, depth + 1)
            is_merge = key == _MERGE and isinstance(event, yaml.ScalarEvent) and event.implicit[0]
            value = self._value(self._next(), depth + 1)
            sources = _mappings(value) if is_merge else None
            if sources is None:
                members[key] = value
            else:
                merged += sources
        if not merged:
            return members
        whole: dict[str, object] = {}
        for source in reversed((members, *merged)):  # the first merged member wins over others, an own one over all
            whole.update(source)
        return whole

    def _key(self, event: yaml.Event, depth: int) -> str:
        """Read a key that is an alias, has an anchor or a tag, or is no scalar."""
        if isinstance(event, yaml.AliasEvent):
            key = self._alias(event, depth)
            if isinstance(key, str):
                return key
        else:
            self._check(event, depth)
        if not isinstance(event, yaml.ScalarEvent):
            raise _refuse_feature("a mapping key must be a scalar", event.start_mark)
        if event.anchor is not None:
            self._anchors[event.anchor] = _Anchored(event.value, 1, 0)
        return event.value

    def _check(self, event: yaml.Event, depth: int) -> None:
        """Refuse tags outside the core schema; enforce the limits on nodes and depth."""
        self._count(1)
        if not isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent):
            raise _refuse_feature("a value is missing", event.start_mark)
        tags = _SCALAR_TAGS if isinstance(event, yaml.ScalarEvent) else _COLLECTION_TAGS
        if event.tag is not None and event.tag not in tags:  # guard: yaml-tags
            raise _refuse_feature(f"the tag {event.tag} is not accepted", event.start_mark)
        if not isinstance(event, yaml.ScalarEvent):
            self._descend(depth, event)

    def _count(self, nodes: int) -> None:
        self._node_count += nodes
        if self._node_count > self._max_nodes:
            raise DocumentTooLarge(f"The document has more than {self._max_nodes} values, with aliases expanded.")

    def _descend(self, depth: int, event: yaml.Event) -> None:
        self._deepest = max(self._deepest, depth)
        if depth >= self._max_depth:  # guard: yaml-depth
            problem = f"nested more than {self._max_depth} levels deep"
            raise DocumentTooLarge(f"The document is {problem}.", faults=[_fault(problem, event.start_mark)])


def _mappings(value: object) -> Sequence[Object] | None:
    """The mappings that a merge key names; None if it names something else, and is an ordinary key."""
    items = as_list(value) or (value,)
    found = [mapping for mapping in map(as_object, items) if mapping is not None]
    return found if len(found) == len(items) else None


def resolve_plain(text: str) -> object:
    """Convert an unquoted scalar by the core schema. Infinity, NaN and numbers of over 300 characters stay text."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMBER_STARTS or len(text) > MAX_NUMBER_LENGTH:
        return text
    if _INTEGER.fullmatch(text):
        integer = int(text, 0) if text[:2] in {"0o", "0x"} else int(text)
        if integer.bit_length() <= _INTEGER_BITS:
            return integer
        try:
            return float(integer)
        except OverflowError:
            return text
    if _FLOAT.fullmatch(text) and math.isfinite(number := float(text)):
        return number
    return text


def _refuse_syntax(problem: str, mark: _Mark | None) -> InvalidDocument:
    return _refuse("is not valid YAML", problem, mark)


def _refuse_feature(problem: str, mark: _Mark | None) -> InvalidDocument:
    return _refuse("uses unsupported YAML", problem, mark)


def _refuse(summary: str, problem: str, mark: _Mark | None) -> InvalidDocument:
    fault = _fault(problem, mark)
    position = f" at line {fault.line}, column {fault.column}" if mark is not None else ""
    return InvalidDocument(f"The document {summary}{position}: {problem}.", faults=[fault])


def _fault(problem: str, mark: _Mark | None) -> Fault:
    if mark is None:
        return Fault(pointer="", reason=problem)
    return Fault(pointer="", reason=problem, line=mark.line + 1, column=mark.column + 1)
