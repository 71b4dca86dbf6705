"""Results of live sources, read block by block: what is not valid or not permitted costs only itself.

An unknown or invalid block becomes a text with the reason. A link keeps its form if its scheme is `https` or that of a
resource or template which the source lists; a `file:` link only if the source lists its URI. Other links become text.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from gateway.definitions.contract.contents import BLOCK_FIELDS, CONTENTS_FIELDS, validate_content
from gateway.definitions.excerpts import shorten
from gateway.definitions.live.foreign_meta import foreign_meta
from gateway.definitions.live.page_uris import is_page, shown_uri
from gateway.domain.json_access import as_list, as_object
from gateway.domain.primitives import Family
from gateway.domain.refusals import LiveSourceFailed
from gateway.errors import DefinitionInvalid
from gateway.handlers.live.limits import MAX_CHECKED_LENGTH, MAX_NOTICE_LENGTH, MAX_SHOWN_TYPE_LENGTH

_RESULT_MEMBERS: Final[Mapping[Family, Sequence[str]]] = {
    Family.TOOL: ("content", "structuredContent", "isError", "_meta"),
    Family.RESOURCE: ("contents",),
    Family.TEMPLATE: ("contents",),
    Family.PROMPT: ("messages", "description"),
}
_OF_SCRIPTS: Final = frozenset({"javascript", "vbscript", "data", "blob"})
"""Schemes that run or contain what they name; no source can list them as its own."""
_FILE: Final = "file"
_NEVER_READ: Final = _OF_SCRIPTS | {_FILE, "http", "https"}
"""Schemes of links that a client does not read at the source."""

Block = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnUris:
    """The URIs of one source: its name, the schemes that it lists, and a test for a URI that it lists."""

    source: str
    schemes: frozenset[str] = frozenset()
    lists: Callable[[str], bool] = lambda _: False


@dataclass(slots=True)
class ReceivedResult:
    """A result of a source: the members that the gateway forwards, the URIs of its links, and notices for the admin."""

    members: dict[str, Any] = field(default_factory=dict[str, Any])
    links: list[str] = field(default_factory=list[str])
    notices: list[str] = field(default_factory=list[str])


def count_blocks(result: Mapping[str, Any], family: Family) -> int:
    """Return the number of content blocks, messages or contents of a result."""
    return len(as_list(result.get(_RESULT_MEMBERS[family][0])) or ())


def receive(result: Mapping[str, Any], family: Family, own: OwnUris) -> ReceivedResult:
    """Read the result object of a source.

    Raises:
        LiveSourceFailed: the first member, which each result of the family has, is missing.
    """
    first, *_ = names = _RESULT_MEMBERS[family]
    if first not in result:
        raise LiveSourceFailed(f"the live source sent a result without the member {first!r}")
    received = ReceivedResult({name: result[name] for name in names if name in result})
    reading = _Reading(received, own)
    members, items = received.members, as_list(result[first])
    if items is not None:
        match family:
            case Family.TOOL:
                members[first] = [reading.block(item) for item in items]
            case Family.PROMPT:
                members[first] = [reading.message(item) for item in items]
            case _:
                members[first] = [reading.contents(item) for item in items]
    if (meta := as_object(members.get("_meta"))) is not None:
        members["_meta"] = foreign_meta(own.source, meta)
    return received


class _Reading:
    """The reading of one result."""

    def __init__(self, received: ReceivedResult, own: OwnUris) -> None:
        self._received = received
        self._own = own

    def block(self, raw: object) -> object:
        """Return a content block, or a text in its place."""
        given = as_object(raw)
        kind = None if given is None else given.get("type")
        known = BLOCK_FIELDS.get(kind) if isinstance(kind, str) else None
        if given is None or known is None:
            shown = shorten(kind, MAX_SHOWN_TYPE_LENGTH) if isinstance(kind, str) else "none"
            return self._omit(f"a content block of the type {shown!r}, which the gateway does not know")
        block = {name: value for name in known if (value := given.get(name)) is not None}
        if (meta := as_object(block.get("_meta"))) is not None:
            block["_meta"] = foreign_meta(self._own.source, meta)
        if kind == "text" and isinstance(block.get("text"), str):
            return block
        if _length_of(block) <= MAX_CHECKED_LENGTH:
            try:
                validate_content([block])
            except DefinitionInvalid as wrong:
                return self._omit(f"a content block of the type {kind} that is not valid: {wrong.message}")
        match kind:
            case "resource_link":
                return self._link(block)
            case "resource":
                return self._embedded(block)
            case _:
                return block

    def message(self, raw: object) -> object:
        """Return a message of a prompt with its content."""
        given = as_object(raw)
        if given is None or "content" not in given:
            return raw
        return {"role": given.get("role"), "content": self.block(given["content"])}

    def contents(self, raw: object) -> object:
        """Return one content of a resource."""
        given = as_object(raw)
        if given is None:
            return raw
        return self._contents_of(given)

    def _contents_of(self, given: Block) -> dict[str, object]:
        contents = {name: value for name in CONTENTS_FIELDS if (value := given.get(name)) is not None}
        if (meta := as_object(contents.get("_meta"))) is not None:
            contents["_meta"] = foreign_meta(self._own.source, meta)
        if isinstance(uri := contents.get("uri"), str):
            contents["uri"] = self._shown(uri)
        return contents

    def _link(self, block: dict[str, object]) -> Block:
        uri = str(block.get("uri", ""))
        if self._is_permitted(uri):  # guard: live-link-noted
            if _scheme_of(uri) not in _NEVER_READ and not is_page(uri):
                self._received.links.append(uri)
            return {**block, "uri": self._shown(uri)}
        name = str(block.get("title") or block.get("name") or "")
        lines = (f"{name}: {uri}" if name else uri, block.get("description"))
        kept = {"annotations": block["annotations"]} if "annotations" in block else {}
        return {"type": "text", "text": "\n".join(str(line) for line in lines if line), **kept}

    def _embedded(self, block: dict[str, object]) -> Block:
        resource = self._contents_of(as_object(block.get("resource")) or {})
        if _scheme_of(str(resource.get("uri", ""))) not in _OF_SCRIPTS:  # guard: live-embedded-scheme
            return {**block, "resource": resource}
        text = resource.get("text")
        return {"type": "text", "text": text} if isinstance(text, str) else self._omit("a resource with a script URI")

    def _is_permitted(self, uri: str) -> bool:
        scheme = _scheme_of(uri)
        if scheme in _OF_SCRIPTS:
            return False
        if scheme == _FILE:
            return self._own.lists(uri)
        return scheme == "https" or scheme in self._own.schemes or is_page(uri)  # guard: live-link-scheme

    def _shown(self, uri: str) -> str:
        try:
            return shown_uri(self._own.source, uri)
        except ValueError:
            return f"invalid:{uri[3:]}"  # names no page; never one of another source

    def _omit(self, reason: str) -> Block:
        notice = shorten(f"omitted: {reason}", MAX_NOTICE_LENGTH)
        self._received.notices.append(notice)
        return {"type": "text", "text": f"[{notice}]"}


def _length_of(block: Block) -> int:
    inner = as_object(block.get("resource")) or {}
    values = (block.get("data"), inner.get("blob"), inner.get("text"))
    return sum(len(value) for value in values if isinstance(value, str))


def _scheme_of(uri: str) -> str:
    return uri.partition(":")[0].strip().lower()
