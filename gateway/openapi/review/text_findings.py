"""Suspicious text of an import: injected instructions, secrets, look-alike letters, and text hidden from people.

Texts of tools and of query tools are searched in the form that agents read, each string once. Invisible characters and
HTML comments are searched in the document itself, because imports remove them from the definitions of tools.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, TypeAlias, cast

import msgspec
import orjson
from msgspec.structs import replace

from gateway.domain.json_access import Object, point, tokens_of
from gateway.domain.sources import CompiledOperation
from gateway.domain.text_search.guardrail_checks import GuardrailCheck
from gateway.domain.text_search.invisible import is_concealing
from gateway.domain.text_search.look_alikes import find_alike, has_mixed_letters
from gateway.domain.text_search.search import search_all
from gateway.domain.updates.source_changes import FindingKind, TextFinding, look_alike
from gateway.openapi.document.document import Document
from gateway.openapi.query.outline import Outline
from gateway.openapi.review.excerpts import cut
from gateway.openapi.review.limits import MAX_FINDINGS, MIN_SEARCHED_LENGTH, SEARCH_BATCH_BYTES, SMALL_BATCH_BYTES

_COMMENT = "<!--"
_EXAMPLES = frozenset(("example", "examples", "default", "enum", "const", "value"))
"""Members with values. An HTML comment in a value is part of a page or template, so it is not reported."""
_SAMPLES = frozenset(("example", "examples"))
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_URL = re.compile(rb"\bhttps?:(?:\\?/){2}([^\s/?#\"'<>()\[\]\\]+)", re.IGNORECASE)
_DICT: type[Any] = dict
_CONTAINERS: frozenset[type] = frozenset((dict, list))
_OPERATION_DEPTH = 2
_ENDS = (".", "!", "?", ":")
_SEPARATOR = " 0" * 8
_Position: TypeAlias = "tuple[_Position, object] | None"
"""A place in a JSON value: the place of its container, and its name or index there; None for the value itself."""
_Suspicion = tuple[FindingKind, str]
"""The kind of a finding, and the name of its pattern."""
_CHECKS = {GuardrailCheck.INJECTION: FindingKind.INSTRUCTIONS, GuardrailCheck.SECRETS: FindingKind.SECRET}


def find_texts(
    document: Document, compiled: Sequence[CompiledOperation], outline: Outline | None
) -> tuple[TextFinding, ...]:
    """Return the findings on a document, its tools and its outline; at most `MAX_FINDINGS`.

    If there are more, the last finding reports this.
    """
    found = list(islice(_find_all(document, compiled, outline), MAX_FINDINGS))
    if len(found) == MAX_FINDINGS:
        more = f"there are more than {MAX_FINDINGS - 1} findings; the others are not listed"
        found[-1] = TextFinding(kind=FindingKind.MORE, pointer="", excerpt=more)
    return tuple(found)


def find_in_definitions(definitions: Mapping[str, bytes]) -> Iterator[tuple[str, TextFinding]]:
    """Yield the findings on definitions that belong to no document, each with the name of its definition.

    Pointers lead into the definition.
    """
    searched = _Search()
    for batch in _batches((_read(name, "", text) for name, text in definitions.items()), SEARCH_BATCH_BYTES):
        is_clear = searched.is_clear(batch)
        for part in batch:
            found = chain(_find_concealed_in(part), () if is_clear else searched.find(part))
            yield from ((part.tool or "", finding) for finding in found)


def find_hosts(*texts: bytes) -> frozenset[str]:
    """Return the hosts of all URLs in JSON texts."""
    return frozenset(host.decode("utf-8", "replace").lower() for text in texts for host in _URL.findall(text))


def _find_all(
    document: Document, compiled: Sequence[CompiledOperation], outline: Outline | None
) -> Iterator[TextFinding]:
    tools = {one.identity: one.tool for one in compiled}
    if document.may_conceal and (hidden := {text for text in set(_collect(document.root)) if _conceals(text)}):
        yield from _find_concealed(document.root, hidden, tools)
    for tool, other in find_alike(one.tool for one in compiled):
        yield look_alike(tool, other)
    parts = (_read(one.tool, "", one.definition) for one in compiled)
    outlined = () if outline is None else _outlined(outline, tools)
    searched = _Search()
    for batch in _batches(chain(parts, outlined), SEARCH_BATCH_BYTES):
        if searched.is_clear(batch):
            continue
        for few in _batches(batch, SMALL_BATCH_BYTES):
            if not searched.is_clear(few):
                for part in few:
                    yield from searched.find(part)


class _TextPart(msgspec.Struct, frozen=True):
    """A JSON text that is searched separately: a tool's definition, or a part of an outline."""

    tool: str | None
    pointer: str
    text: bytes
    texts: Sequence[str] = ()
    """The names and strings of at least `_MIN_LENGTH` characters."""


def _outlined(outline: Outline, tools: Mapping[str, str]) -> Iterator[_TextPart]:
    """Split an outline into parts: each operation, each schema, and the rest."""
    for endpoint in outline.endpoints:
        place = f"/endpoints{point(endpoint.identity)}"
        yield _read(tools.get(endpoint.identity), place, msgspec.json.encode(endpoint))
    for entry in outline.schemas:
        yield _read(None, f"/schemas{point(entry.name)}", msgspec.json.encode(entry))
    yield _read(None, "", msgspec.json.encode(replace(outline, endpoints=(), schemas=())))


def _batches(parts: Iterable[_TextPart], limit: int) -> Iterator[Sequence[_TextPart]]:
    """Group parts into batches, because each search has a fixed cost."""
    batch: list[_TextPart] = []
    size = 0
    for part in parts:
        batch.append(part)
        size += len(part.text)
        if size >= limit:
            yield batch
            batch, size = [], 0
    yield batch


class _Search:
    """Search of many parts; each distinct string is searched once."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[_Suspicion, ...]] = {}

    def is_clear(self, parts: Iterable[_TextPart]) -> bool:
        """True if a search of these parts as one text finds nothing suspicious."""
        texts = [text for part in parts for text in part.texts]
        fresh = [text for text in dict.fromkeys(texts) if text not in self._known]
        if fresh and _find_suspicions(_join(fresh)):
            return False
        self._known.update(dict.fromkeys(fresh, ()))
        return not any(map(self._known.get, texts))

    def find(self, part: _TextPart) -> Iterator[TextFinding]:
        """Yield the findings in one part. Its strings are searched as one, so that a phrase across two strings is
        found.
        """
        texts = dict.fromkeys(part.texts)
        fresh = [text for text in texts if text not in self._known]
        whole = _find_suspicions(_join(fresh)) if fresh else ()
        self._known.update((text, _find_suspicions(text) if whole else ()) for text in fresh)
        suspicious = {text: found for text in texts if (found := self._known[text])}
        if suspicious:
            yield from _locate(orjson.loads(part.text), suspicious, part)
            return
        for kind, pattern in whole:
            excerpt = "several of its strings, read in sequence"
            yield TextFinding(kind=kind, pointer=part.pointer, excerpt=excerpt, tool=part.tool, pattern=pattern)


def _join(texts: Sequence[str]) -> str:
    """Join strings. Each one ends a sentence, and is followed by words that no suspicious phrase can span."""
    return "\n".join(f"{text}\n{_SEPARATOR}" if text.endswith(_ENDS) else text for text in texts)


def _read(tool: str | None, pointer: str, text: bytes) -> _TextPart:
    return _TextPart(tool, pointer, text, _collect(orjson.loads(text), MIN_SEARCHED_LENGTH))


def _find_suspicions(text: str) -> tuple[_Suspicion, ...]:
    names = search_all(dict.fromkeys(_CHECKS, ()), text)
    found = [(kind, pattern) for check, kind in _CHECKS.items() for pattern in names[check]]
    if not text.isascii() and has_mixed_letters(text):
        found.append((FindingKind.LETTERS, ""))
    return tuple(found)


def _locate(value: object, suspicious: Mapping[str, Sequence[_Suspicion]], part: _TextPart) -> Iterator[TextFinding]:
    for place, text in _located_texts(value, part.pointer, suspicious):
        for kind, pattern in suspicious[text]:
            if kind is FindingKind.SECRET and not _SAMPLES.isdisjoint(place.split("/")):
                continue  # documents show the form of a secret as an example
            excerpt = next((one for one in _SENTENCE.split(text) if (kind, pattern) in _find_suspicions(one)), text)
            yield TextFinding(kind=kind, pointer=place, excerpt=cut(excerpt), tool=part.tool, pattern=pattern)


def _find_concealed(
    root: Object, hidden: Collection[str], tools: Mapping[str, str], start: str = "#"
) -> Iterator[TextFinding]:
    """Locate concealed text of a document. A comment in an example belongs to a page, so it is not concealed."""
    for place, text in _located_texts(root, start, hidden):
        kind = FindingKind.INVISIBLE if is_concealing(text) else FindingKind.COMMENT
        if kind is FindingKind.INVISIBLE or _EXAMPLES.isdisjoint(place.split("/")):
            yield TextFinding(kind=kind, pointer=place, excerpt=cut(text), tool=tools.get(_identity(place)))


def _conceals(text: str) -> bool:
    is_plain = text.isascii() and text.isprintable()
    return _COMMENT in text or (not is_plain and is_concealing(text))


def _find_concealed_in(part: _TextPart) -> Iterator[TextFinding]:
    """Locate concealed text of one definition."""
    if part.text.isascii() and _COMMENT.encode() not in part.text:
        return
    value = cast("Object", orjson.loads(part.text))
    if hidden := {text for text in _collect(value) if _conceals(text)}:
        yield from _find_concealed(value, hidden, {}, part.pointer)


def _identity(pointer: str) -> str:
    """The identity of the operation that contains this position of a document."""
    section, *tokens = tokens_of(pointer)
    return f"{tokens[1].upper()} {tokens[0]}" if section == "paths" and len(tokens) >= _OPERATION_DEPTH else ""


def _collect(value: object, shortest: int = 0) -> list[str]:
    """All names and strings in a JSON value, in order; a tight loop, because documents have hundreds of thousands."""
    found: list[str] = []
    add = found.append
    pending: list[Any] = [value]
    while pending:
        members: Any = pending.pop()
        if type(members) is _DICT:
            for name in members:
                if len(name) >= shortest:
                    add(name)
            members = members.values()
        inner: list[Any] = []
        for part in members:
            if type(part) is str:
                if len(part) >= shortest:
                    add(part)
            elif type(part) in _CONTAINERS:
                inner.append(part)
        pending += inner[::-1]
    return found


def _located_texts(value: object, pointer: str, wanted: Collection[str]) -> Iterator[tuple[str, str]]:
    """The wanted strings in a JSON value, and the wanted names of its members, with their pointers.

    A position is a chain of tokens until it is yielded: most strings of a document are not wanted.
    """
    pending: list[tuple[_Position, object]] = [(None, value)] if _may_lead_to(value, wanted) else []
    while pending:
        position, one = pending.pop()
        if isinstance(one, str):
            yield _pointer_of(position, pointer), one
            continue
        is_object = isinstance(one, dict)
        members: Iterable[tuple[object, object]] = (
            cast("dict[object, object]", one).items() if is_object else enumerate(cast("list[object]", one))
        )
        inner = [((position, key), part) for key, part in members if _may_lead_to(part, wanted)]
        pending += reversed(inner)
        if is_object:
            for name in cast("dict[str, object]", one):
                if name in wanted and (len(name) >= MIN_SEARCHED_LENGTH or not name.isascii()):
                    yield _pointer_of((position, name), pointer), name


def _may_lead_to(value: object, wanted: Collection[str]) -> bool:
    return value in wanted if isinstance(value, str) else type(value) in _CONTAINERS and bool(value)


def _pointer_of(position: _Position, start: str) -> str:
    tokens: list[object] = []
    while position is not None:
        position, token = position
        tokens.append(token)
    return start + "".join(point(str(token)) for token in reversed(tokens))
