"""Pages of a stored result: the part at a JSON Pointer, from an offset, within a number of bytes.

Every part can be read. A page that ends early contains `next_offset`. `omitted` lists the pointers of parts that are
larger than a page, so that a client can request them separately. The values of a page are copied as bytes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final

import msgspec
import orjson

from gateway.definitions.large_results.document import ResultDocument, json_of, read_document
from gateway.definitions.large_results.element_conditions import ConditionTests, ElementCondition
from gateway.definitions.large_results.json_parts import (
    Part,
    is_index,
    part_at,
    parts_of,
    split_list,
    text_of,
)
from gateway.definitions.large_results.limits import (
    MAX_NAMED,
    MAX_OMITTED,
    MAX_POINTER_WORK_BYTES,
    MAX_RESULT_POINTER_LENGTH,
    MAX_TESTED,
)
from gateway.domain.json_access import point, tokens_of
from gateway.errors import ArgumentsInvalid, Fault, HandlerFailed
from gateway.sandbox.result_tasks import ResultTask

_PAGE_HEAD: Final = 1024
"""Bytes reserved for the other members of a page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartRequest:
    """The requested part of a document: its pointer, its range, and conditions on its elements."""

    pointer: str = ""
    offset: int = 0
    limit: int | None = None
    where: tuple[ElementCondition, ...] = ()


@dataclass(slots=True)
class _Parts:
    """The parts of a container from an offset on, its kind, and the total number of its parts."""

    following: Iterator[Part]
    kind: str
    total: int


@dataclass(slots=True)
class _Page:
    """The parts of a page so far, and the bytes that remain."""

    room: int
    offset: int
    tests: ConditionTests
    values: list[Part] = field(default_factory=list[Part])
    indexes: list[int] = field(default_factory=list[int])
    omitted: list[dict[str, object]] = field(default_factory=list[dict[str, object]])
    next_offset: int | None = None


class PageHead(msgspec.Struct, frozen=True):
    """The request for a page of at most about `room` bytes."""

    request: PartRequest
    room: int


def _read_page(head: PageHead, body: bytes) -> bytes:
    document = read_document(body)
    if document is None:
        raise HandlerFailed("the result is binary; read the whole resource")
    try:
        return read_part(document, head.request, room=head.room)
    except RecursionError:  # deeper than the parser reads
        return read_part(replace(document, is_json=False), head.request, room=head.room)


PAGE: Final = ResultTask("page", _read_page, PageHead, bytes)
"""Reads one page of a stored result, given by its bytes."""


def read_part(document: ResultDocument, request: PartRequest, *, room: int) -> bytes:
    """Return a page of at most about `room` bytes as a JSON object.

    Raises:
        ArgumentsInvalid: the pointer leads to no part or is too expensive to follow, or `where` is set for a part
            without elements.
    """
    room -= _PAGE_HEAD
    if not document.is_json:
        return _read_text(document, request, room)
    raw, work = document.body, 0
    tokens = tokens_of(request.pointer)
    for depth, token in enumerate(tokens):
        work += len(raw)
        if work > MAX_POINTER_WORK_BYTES:  # guard: result-pointer-bounded
            raise _invalid("/pointer", "it is too deep for a result of this size; read the whole resource")
        found = part_at(raw, token)
        if found is None:
            raise _missing_part(tokens[:depth], token, raw)
        raw = found
    return _read_value(raw, request, room)


def _read_text(document: ResultDocument, request: PartRequest, room: int) -> bytes:
    tokens = tokens_of(request.pointer)
    if not tokens:
        lines = islice(document.lines(), request.offset, None)
        parts = _Parts(((None, json_of(line.decode())) for line in lines), "lines", document.count_lines())
        return _read_parts(parts, request, room)
    line = None
    if len(tokens) == 1 and is_index(tokens[0]):
        line = next(islice(document.lines(), int(tokens[0]), None), None)
    if line is None:
        raise _invalid("/pointer", "the result is a text; its lines are /0, /1 and so on")
    return _read_characters(line.decode(), request, room)


def _read_value(raw: bytes, request: PartRequest, room: int) -> bytes:
    if raw.startswith(b"["):
        elements = split_list(raw)
        below = ((None, bytes(part)) for part in islice(elements, request.offset, None))
        return _read_parts(_Parts(below, "array", len(elements)), request, room)
    if raw.startswith(b"{"):
        members = list(parts_of(raw))
        return _read_parts(_Parts(islice(members, request.offset, None), "object", len(members)), request, room)
    if raw.startswith(b'"'):
        return _read_characters(text_of(raw), request, room)
    return _join(request, {"kind": "value"}, raw)


def _read_characters(text: str, request: PartRequest, room: int) -> bytes:
    if request.where:
        raise _invalid("/where", "the part at the pointer has no elements to select")
    limit = len(text) if request.limit is None else request.limit
    shown = text[request.offset : request.offset + min(limit, room)]
    while len(json_of(shown)) > room and len(shown) > 1:
        shown = shown[: max(1, len(shown) * room // len(json_of(shown)) - 1)]
    end = request.offset + len(shown)
    page: dict[str, object] = {"kind": "text", "total": len(text)}
    if end < len(text):
        page["next_offset"] = end
    return _join(request, page, json_of(shown))


def _read_parts(parts: _Parts, request: PartRequest, room: int) -> bytes:
    page = _Page(room, request.offset, ConditionTests(request.where))
    for index, (name, raw) in enumerate(parts.following, request.offset):
        if not _add_part(page, request, index, name, raw=raw):
            page.next_offset = index
            break
    found: dict[str, object] = {"kind": parts.kind, "total": parts.total}
    if page.next_offset is not None:
        found["next_offset"] = page.next_offset
    if request.where:
        found["indexes"] = page.indexes
    if page.omitted:
        found["omitted"] = page.omitted
    return _join(request, found, _value_of(parts.kind, page))


def _add_part(page: _Page, request: PartRequest, index: int, name: str | None, *, raw: bytes) -> bool:
    """Add a part to the page if it matches the conditions; return False if the page ends before the part."""
    is_full = request.limit is not None and len(page.values) + len(page.omitted) >= request.limit
    if is_full or (request.where and index - page.offset >= MAX_TESTED):  # guard: result-conditions-bounded
        return False
    if page.tests.is_used_up:  # guard: result-conditions-work
        return False
    if request.where and not page.tests.matches(raw):
        return True
    size = len(raw) + (0 if name is None else len(name.encode("utf-8", "replace")) + 3) + 12
    if size > page.room:
        if page.values or len(page.omitted) >= MAX_OMITTED:
            return False
        pointer = request.pointer + point(index if name is None else name)
        page.omitted.append({"pointer": pointer[:MAX_RESULT_POINTER_LENGTH], "bytes": len(raw)})
        return True
    page.room -= size
    page.values.append((name, raw))
    page.indexes.append(index)
    return True


def _value_of(kind: str, page: _Page) -> bytes:
    if kind == "lines":
        return json_of("".join(text_of(raw) for _, raw in page.values))
    if kind == "array":
        return b"[" + b",".join(raw for _, raw in page.values) + b"]"
    return b"{" + b",".join(json_of(name or "") + b":" + raw for name, raw in page.values) + b"}"


def _join(request: PartRequest, page: dict[str, object], value: bytes) -> bytes:
    head = orjson.dumps({"pointer": request.pointer, "offset": request.offset, **page})
    return head[:-1] + b',"value":' + value + b"}"


def _missing_part(found: Sequence[str], token: str, raw: bytes) -> ArgumentsInvalid:
    place = point(*found) or "the whole result"
    if raw.startswith(b"["):
        what = f"an array of {sum(1 for _ in parts_of(raw)):,}"
    elif raw.startswith(b"{"):
        names = [name or "" for name, _ in islice(parts_of(raw), MAX_NAMED)]
        what = f"an object; its first members are {', '.join(name[:40] for name in names) or 'none'}"
    else:
        what = "neither an array nor an object"
    return _invalid("/pointer", f"the result has no part {token[:40]!r} there: {place[:200]} is {what}")


def _invalid(pointer: str, reason: str) -> ArgumentsInvalid:
    fault = Fault(pointer=pointer, reason=reason)
    return ArgumentsInvalid("the part cannot be read", faults=(fault,))
