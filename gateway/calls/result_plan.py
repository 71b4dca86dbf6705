"""Plan of the summary of a large result: its large parts as documents, each with an outline and a shortened start."""

import re
from dataclasses import replace
from typing import Any, Final

import msgspec

from gateway.calls.limits import MAX_DOCUMENTS, MAX_OUTLINE_BYTES, MAX_PREVIEW_BYTES, MAX_PREVIEW_PARTS
from gateway.calls.truncation import cut_json, cut_text
from gateway.calls.upstream_errors import quote
from gateway.definitions.large_results.document import ResultDocument, read_document
from gateway.definitions.large_results.json_parts import text_of
from gateway.definitions.large_results.outline import outline
from gateway.sandbox.result_tasks import ResultTask


class ResultMembers(msgspec.Struct):
    """The members of a result; structured content stays encoded, so that numbers keep all digits."""

    content: list[msgspec.Raw]
    structured: msgspec.Raw = msgspec.field(name="structuredContent", default=msgspec.Raw())
    is_error: bool = msgspec.field(name="isError", default=False)
    meta: msgspec.Raw = msgspec.field(name="_meta", default=msgspec.Raw())


class _Block(msgspec.Struct):
    type: str = ""
    text: str | None = None


class LargePart(msgspec.Struct):
    """One large part of a result: its document, and the parts of its summary."""

    document: ResultDocument
    outline: str
    preview: str


class ResultPlan(msgspec.Struct):
    """A result in which each large part takes the position of its block."""

    blocks: list[bytes | LargePart]
    structured: bytes
    end: bytes


_TEXT_START: Final = b'"content":[{"type":"text","text":"'
_CHARACTERS: Final = re.compile(rb'(?:[^"\\]|\\u[0-9A-Fa-f]{4}|\\[^u])*+')
_IS_ERROR: Final = b',"isError":'
_EMPTY_TEXT: Final = b'{"type":"text","text":""}'
WHOLE_START: Final = b'"content":[' + _EMPTY_TEXT + b'],"structuredContent":'
"""The start of a result that will be summarised: its text is empty, because a summary replaces it."""
_read = msgspec.json.Decoder(ResultMembers).decode
_read_block = msgspec.json.Decoder(_Block).decode


def read_result(members: bytes) -> ResultMembers:
    """Read the members of a result; their content stays encoded."""
    return _read(b"{" + members + b"}")


def structure_of(members: bytes) -> bytes:
    """Return the JSON of a result that begins with `WHOLE_START`."""
    return members[len(WHOLE_START) : members.rfind(_IS_ERROR)]


def start_of_text(members: bytes, limit: int) -> bytes:
    """Return the first text block of a result, cut to `limit` bytes of its JSON string; empty without a text."""
    found = _CHARACTERS.match(members, len(_TEXT_START), len(_TEXT_START) + limit)
    if found is None or not members.startswith(_TEXT_START):
        return b""
    shown = text_of(b'"' + found[0].decode("utf-8", "ignore").encode() + b'"')
    return b'{"type":"text","text":' + quote(shown) + b"}"


def _plan(threshold: int, members: bytes) -> ResultPlan | None:
    """Find the large parts of a result; None if it is an error or has none."""
    read = read_result(members)
    if read.is_error:  # guard: summary-of-successes
        return None
    structured, budget = bytes(read.structured), threshold // 2
    blocks: list[bytes | LargePart] = []
    repeated = structured.decode() if len(structured) > threshold else None
    if repeated is not None:
        blocks.append(_large_part(structured, budget))
    for raw in map(bytes, read.content):
        text = _read_block(raw).text if len(raw) > threshold else None
        if repeated is not None and (text == repeated or raw == _EMPTY_TEXT):
            continue
        body = b"" if text is None else text.encode("utf-8", "replace")
        is_full = sum(isinstance(block, LargePart) for block in blocks) >= MAX_DOCUMENTS
        blocks.append(raw if is_full or len(body) <= threshold else _large_part(body, budget))
    if not any(isinstance(block, LargePart) for block in blocks):
        return None
    meta = (b',"_meta":', bytes(read.meta)) if bytes(read.meta) else ()
    end = b"".join((b',"isError":false', *meta))
    return ResultPlan(blocks, b"" if repeated is not None else structured, end)


def _large_part(body: bytes, budget: int) -> LargePart:
    document = read_document(body)
    assert document is not None  # a text block of the result, so UTF-8
    room = min(budget, MAX_PREVIEW_BYTES)
    shape = None
    if document.is_json:
        try:
            shape = outline(document.body, room=min(budget // 2, MAX_OUTLINE_BYTES))
        except RecursionError:  # the parser reads less depth here than at the check
            document = replace(document, is_json=False)
    if shape is None:
        return LargePart(
            document, f"text of {document.count_lines():,} lines", cut_text(body.decode(), room).kept.decode()
        )
    start = cut_json(document.body, room, max_parts=MAX_PREVIEW_PARTS)
    return LargePart(document, shape, start.kept.decode("utf-8", "replace"))


_ANSWER: Any = ResultPlan | None
PLAN: Final[ResultTask[int, ResultPlan | None]] = ResultTask("plan", _plan, int, _ANSWER)
"""Makes the plan for the members of a result, and a threshold in bytes; None for an error, or if nothing is large."""
