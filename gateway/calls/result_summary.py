"""Summaries of large results: outline, first items, and the URI under which the caller reads every part (decision 60).

A summary replaces structured content, and each text block, above the threshold of the caller's profile. Other blocks
are unchanged. Redaction, guardrails and output schemas are applied before, so they cover the stored documents too.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

import orjson

from gateway.calls.limits import MAX_STORED_DOCUMENTS_BYTES
from gateway.calls.result_plan import PLAN, WHOLE_START, LargePart, ResultPlan, start_of_text, structure_of
from gateway.calls.truncation import cut_json, cut_start, cut_text, describe
from gateway.calls.upstream_errors import quote
from gateway.definitions.large_results.document import ResultDocument
from gateway.definitions.large_results.read_result import READ_RESULT
from gateway.domain.fairness.large_work import run_large
from gateway.domain.identifiers import TenantId
from gateway.errors import HandlerFailed
from gateway.handlers.response_body.result_processes import ResultProcesses

Keep: TypeAlias = Callable[[str, bytes], Awaitable[str | None]]
"""Stores a document of a content type for the caller; returns its URI, or None if it cannot be stored."""


class Summaries:
    """Makes the summaries of results. `limit` is the size in bytes to which a part is cut that cannot be stored."""

    def __init__(self, processes: ResultProcesses, *, limit: int) -> None:
        self._processes = processes
        self._limit = limit

    async def summarise(self, tenant: TenantId, members: bytes, threshold: int, keep: Keep) -> bytes:
        """Return the members of a successful result with summaries in place of its parts above `threshold` bytes.

        A part that cannot be stored is cut, with a note; so is a result that takes too much to be summarised.

        Raises:
            ResultBusy: too many large results are in work.
        """
        try:
            plan = await self._processes.run(tenant, PLAN, threshold, members)
        except HandlerFailed as error:
            return await run_large(tenant, len(members), _cut_result, members, self._limit, error.message)
        return members if plan is None else await self._carry_out(tenant, plan, keep)

    async def _carry_out(self, tenant: TenantId, plan: ResultPlan, keep: Keep) -> bytes:
        blocks: list[bytes] = []
        room = MAX_STORED_DOCUMENTS_BYTES
        for block in plan.blocks:
            if isinstance(block, bytes):
                blocks.append(block)
                continue
            body, uri = block.document.body, None
            if len(body) <= room:  # guard: stored-per-result
                uri = await keep(block.document.content_type, body)
                room -= len(body)
            if uri is None:
                blocks += await run_large(tenant, len(body), _truncated_blocks, block.document, self._limit)
            else:
                blocks += (_text(_summary_text(block, uri)), _link(block.document, uri))
        structured = (b',"structuredContent":', plan.structured) if plan.structured else ()
        return b"".join((b'"content":[', b",".join(blocks), b"]", *structured, plan.end))


def _cut_result(members: bytes, limit: int, reason: str) -> bytes:
    """Return the members of a result that has the start of the given one, and the reason."""
    blocks: Sequence[bytes] = (start_of_text(members, limit),)
    if members.startswith(WHOLE_START):
        structured = structure_of(members)
        cut = cut_start(structured, limit)
        blocks = (_text(cut.kept.decode("utf-8", "replace")), _text(describe(cut, whole=len(structured), uri=None)))
    written = b",".join(block for block in (*blocks, _text(f"No summary: {reason}.")) if block)
    return b"".join((b'"content":[', written, b'],"isError":false'))


def _summary_text(large: LargePart, uri: str) -> str:
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
