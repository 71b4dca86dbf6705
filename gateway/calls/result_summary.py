"""Summaries of large results: outline, first items, and the URI under which the caller reads every part (decision 60).

A summary replaces structured content, and each text block, above the threshold of the caller's profile. Other blocks
are unchanged. Redaction, guardrails and output schemas are applied before, so they cover the stored documents too.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import msgspec
import orjson

from gateway.calls.truncation import cut_json, cut_text, describe
from gateway.calls.upstream_errors import quote
from gateway.definitions.large_results.document import ResultDocument, read_document
from gateway.definitions.large_results.outline import outline
from gateway.definitions.large_results.read_result import READ_RESULT
from gateway.domain.fairness.large_work import run_large
from gateway.domain.identifiers import TenantId

Keep: TypeAlias = Callable[[str, bytes], Awaitable[str | None]]
"""Stores a document of a content type for the caller; returns its URI, or None if it cannot be stored."""

_MAX_DOCUMENTS: Final = 4
"""Limit on the summaries of one result; further large text blocks are unchanged."""
_MAX_STORED: Final = 20 * 1024 * 1024
"""Limit on the stored bytes of one result: an owner has 32 MiB, so the last document does not evict the first."""
_MAX_OUTLINE: Final = 4096
_MAX_PREVIEW: Final = 4096
_MAX_PREVIEW_PARTS: Final = 50_000
"""Up to this number of parts, the preview shows small members of the whole document; above it, the truncated start."""


class ResultMembers(msgspec.Struct):
    """The members of a result; structured content stays encoded, so that numbers keep all digits."""

    content: list[msgspec.Raw]
    structured: msgspec.Raw = msgspec.field(name="structuredContent", default=msgspec.Raw())
    is_error: bool = msgspec.field(name="isError", default=False)
    meta: msgspec.Raw = msgspec.field(name="_meta", default=msgspec.Raw())


class _Block(msgspec.Struct):
    type: str = ""
    text: str | None = None


@dataclass(slots=True)
class _LargePart:
    """One large part of a result: its document, and the parts of its summary."""

    document: ResultDocument
    outline: str
    preview: str


@dataclass(slots=True)
class _Plan:
    """A result in which each large part takes the position of its block."""

    blocks: list[bytes | _LargePart]
    structured: bytes
    end: bytes


_EMPTY_TEXT: Final = b'{"type":"text","text":""}'
WHOLE_START: Final = b'"content":[' + _EMPTY_TEXT + b'],"structuredContent":'
"""The start of a result that will be summarised: its text is empty, because a summary replaces it."""
_read = msgspec.json.Decoder(ResultMembers).decode
_read_block = msgspec.json.Decoder(_Block).decode


async def summarise(tenant: TenantId, members: bytes, threshold: int, *, limit: int, keep: Keep) -> bytes:
    """Return the members of a successful result with summaries in place of its parts above `threshold` bytes.

    A part that cannot be stored is cut to `limit` bytes, with a note.
    """
    plan = await run_large(tenant, len(members), _plan, members, threshold)
    if plan is None:
        return members
    blocks: list[bytes] = []
    room = _MAX_STORED
    for block in plan.blocks:
        if isinstance(block, bytes):
            blocks.append(block)
            continue
        body, uri = block.document.body, None
        if len(body) <= room:  # guard: stored-per-result
            uri = await keep(block.document.content_type, body)
            room -= len(body)
        if uri is None:
            blocks += await run_large(tenant, len(members), _truncated_blocks, block.document, limit)
        else:
            blocks += (_text(_summary_text(block, uri)), _link(block.document, uri))
    structured = (b',"structuredContent":', plan.structured) if plan.structured else ()
    return b"".join((b'"content":[', b",".join(blocks), b"]", *structured, plan.end))


def read_result(members: bytes) -> ResultMembers:
    """Read the members of a result; their content stays encoded."""
    return _read(b"{" + members + b"}")


def _plan(members: bytes, threshold: int) -> _Plan | None:
    """Find the large parts of a result; None if it is an error or has none."""
    read = read_result(members)
    if read.is_error:  # guard: summary-of-successes
        return None
    structured, budget = bytes(read.structured), threshold // 2
    blocks: list[bytes | _LargePart] = []
    repeated = structured.decode() if len(structured) > threshold else None
    if repeated is not None:
        blocks.append(_large_part(structured, budget))
    for raw in map(bytes, read.content):
        text = _read_block(raw).text if len(raw) > threshold else None
        if repeated is not None and (text == repeated or raw == _EMPTY_TEXT):
            continue
        body = b"" if text is None else text.encode("utf-8", "replace")
        is_full = sum(isinstance(block, _LargePart) for block in blocks) >= _MAX_DOCUMENTS
        blocks.append(raw if is_full or len(body) <= threshold else _large_part(body, budget))
    if not any(isinstance(block, _LargePart) for block in blocks):
        return None
    meta = (b',"_meta":', bytes(read.meta)) if bytes(read.meta) else ()
    end = b"".join((b',"isError":false', *meta))
    return _Plan(blocks, b"" if repeated is not None else structured, end)


def _large_part(body: bytes, budget: int) -> _LargePart:
    document = read_document(body)
    assert document is not None  # a text block of the result, so UTF-8
    room = min(budget, _MAX_PREVIEW)
    shape = None
    if document.is_json:
        try:
            shape = outline(document.body, room=min(budget // 2, _MAX_OUTLINE))
        except RecursionError:  # the parser reads less depth here than at the check
            document = replace(document, is_json=False)
    if shape is None:
        return _LargePart(
            document, f"text of {document.count_lines():,} lines", cut_text(body.decode(), room).kept.decode()
        )
    start = cut_json(document.body, room, max_parts=_MAX_PREVIEW_PARTS)
    return _LargePart(document, shape, start.kept.decode("utf-8", "replace"))


def _summary_text(large: _LargePart, uri: str) -> str:
    size = f"{len(large.document.body):,} bytes of {'JSON' if large.document.is_json else 'text'}"
    example = orjson.dumps({"result": uri, "pointer": "", "offset": 0}).decode()
    return "\n".join(
        (
            f"The result has {size}; this is a summary. The result can be read for some minutes, in parts:",
            f"with the tool {READ_RESULT} and arguments such as {example}, or as the resource {uri}.",
            "",
            "Outline (* is the first element of an array; others may differ):",
            large.outline,
            "",
            "Start, shortened:",
            large.preview,
        )
    )


def _truncated_blocks(document: ResultDocument, limit: int) -> Sequence[bytes]:
    body = document.body
    cut = cut_json(body, limit) if document.is_json else cut_text(body.decode(), limit)
    note = describe(cut, whole=len(body), uri=None)
    return _text(cut.kept.decode("utf-8", "replace")), _text(f"{note}\nThe rest could not be stored.")


def _text(text: str) -> bytes:
    return b'{"type":"text","text":' + quote(text) + b"}"


def _link(document: ResultDocument, uri: str) -> bytes:
    return orjson.dumps(
        {
            "type": "resource_link",
            "uri": uri,
            "name": "whole result",
            "mimeType": document.content_type,
            "size": len(document.body),
        }
    )
