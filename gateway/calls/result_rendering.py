"""Rendering of an upstream's response as the members of a tool result (MCP `CallToolResult`), as JSON bytes.

A JSON body is checked and minified in C and inserted as bytes, so numbers keep their spelling. A result beyond the size
limit is truncated, with a note. Callers put braces around the members.
"""

import json
from base64 import b64encode
from codecs import getincrementaldecoder
from collections.abc import Sequence
from functools import partial
from typing import Any, Final, Protocol

import msgspec
import orjson
import structlog

from gateway.calls.arguments.duplicate_members import has_repeated_names
from gateway.calls.limits import (
    CHECKED_BYTES,
    MAX_BINARY_BYTES,
    MAX_DECODED_BYTES,
    MAX_TEXT_BYTES,
    MAX_TYPE_LENGTH,
    MAX_WHOLE_BYTES,
)
from gateway.calls.result_plan import WHOLE_START
from gateway.calls.result_summary import Summaries
from gateway.calls.truncation import Truncated, cut_json, cut_start, cut_text, describe, has_many_parts
from gateway.calls.upstream_errors import FIRST_ERROR, error_result, quote
from gateway.calls.upstream_head import add_head, describe_head
from gateway.domain.fairness.large_work import run_large
from gateway.domain.http.requests import UpstreamResponse
from gateway.domain.identifiers import TenantId
from gateway.domain.refusals import ApprovalRequired, OutputInvalid
from gateway.domain.tenancy.principals import Principal
from gateway.errors import Fault, GatewayError, HandlerFailed, RedisUnavailable
from gateway.handlers.response_body.charsets import declared_charset, decode_text
from gateway.handlers.response_body.kinds import is_json, is_text, is_utf8, kind_of
from gateway.handlers.response_body.projection import select_fields
from gateway.handlers.response_body.result_processes import ResultProcesses

log = structlog.get_logger(__name__)


_TOO_MANY_DIGITS = "the result has an integer of more than 4,300 digits (the limit); send it as a string"
CRASHED = "the call failed inside the gateway"
"""The error message for an unexpected exception."""

APPROVAL_META: Final = "gateway/approval"
"""Key of `_meta` for the approval of a call."""
_TEXT_START = b'"content":[{"type":"text","text":'
_END = b'],"isError":false'
_REPEATED = (
    "An object in this JSON has two members of the same name. JSON parsers differ in which one they keep, so the "
    "result is text only, without structured content."
)


class OutputRejected(OutputInvalid):
    """A result that does not match its tool's output schema; `content` are its content blocks, each after a comma."""

    def __init__(self, error: OutputInvalid, content: bytes) -> None:
        super().__init__(error.message, faults=error.faults)
        self.content = content


class ResultOwner(Protocol):
    """The call whose result is stored."""

    @property
    def principal(self) -> Principal:
        """The principal of the call."""
        ...

    @property
    def result_owner(self) -> str:
        """The owner of the result: subject, profile and rules."""
        ...


class OverflowStore(Protocol):
    """The store for complete bodies of truncated results."""

    async def keep(self, tenant: TenantId, owner: str, content_type: str, body: bytes) -> str | None:
        """Store the body and return the URI under which its owner can read it for a while; None if too large."""
        ...


class ResultRenderer:
    """Renders upstream responses, and stores the complete body of a truncated response for its caller."""

    def __init__(self, overflow: OverflowStore | None = None, processes: ResultProcesses | None = None) -> None:
        self._overflow = overflow
        self._processes = processes or ResultProcesses()
        self._summaries = Summaries(self._processes, limit=MAX_TEXT_BYTES)

    async def select(
        self, call: ResultOwner, response: UpstreamResponse, paths: Sequence[str]
    ) -> tuple[UpstreamResponse, str | None]:
        """Return the response with the selected fields, and a note about missing ones; see `projection`."""
        return await select_fields(self._processes, call.principal.tenant, response, paths)

    async def content(
        self, call: ResultOwner, response: UpstreamResponse, *, is_kept: bool, is_whole: bool, has_schema: bool = False
    ) -> bytes:
        """Return the members of the result for this response; a truncated result links to the body, if it is stored.

        A whole text is not truncated, because the result will be summarised. With an output schema only JSON is whole:
        a text does not conform, and becomes an error result, which is not summarised.
        """
        if len(response.body) <= MAX_TEXT_BYTES or response.status >= FIRST_ERROR:
            return content(response)
        is_whole = is_whole and (is_json(kind_of(response)[0]) if has_schema else is_read(response))
        link = None
        if is_kept and not is_whole and is_too_large(response):
            link = await self._keep(call, response.content_type[:MAX_TYPE_LENGTH], response.body)
        work = partial(content, response, link=link, is_whole=is_whole, has_schema=has_schema)
        return await run_large(call.principal.tenant, len(response.body), work)

    async def summarise(self, call: ResultOwner, members: bytes, threshold: int) -> bytes:
        """Return the members of a result with summaries in place of its large parts; see `result_summary`."""
        return await self._summaries.summarise(call.principal.tenant, members, threshold, partial(self._keep, call))

    async def _keep(self, call: ResultOwner, content_type: str, body: bytes) -> str | None:
        if self._overflow is None:
            return None
        tenant = call.principal.tenant
        try:
            return await self._overflow.keep(tenant, call.result_owner, content_type, body)
        except RedisUnavailable:
            log.warning("leftover_not_kept", tenant=tenant)
            return None


def is_too_large(response: UpstreamResponse) -> bool:
    """True if the result of this response may have to be truncated."""
    return len(response.body) > (MAX_TEXT_BYTES if is_read(response) else MAX_BINARY_BYTES)


def is_read(response: UpstreamResponse) -> bool:
    """True if the body of this response may be JSON or text."""
    kind = kind_of(response)[0]
    return is_json(kind) or is_text(kind) or not kind


def content(
    response: UpstreamResponse, *, link: str | None = None, is_whole: bool = False, has_schema: bool = False
) -> bytes:
    """Return the members of the result for this response; a status of 300 or above makes it an error.

    `link` is the URI of the complete body, for a truncated result; `is_whole` disables truncation.
    """
    if response.status >= FIRST_ERROR:
        return error_result(response)
    members = _rendered(response, link, is_whole, has_schema) if response.body else _blocks(describe_head(response))
    return add_head(members, response)


def failure(error: GatewayError, correlation_id: str) -> bytes:
    """The members of an error result: the message, the faults with their pointers, and the correlation id."""
    text = "\n".join([error.message, *(f"{fault.pointer or '/'}: {fault.reason}" for fault in _hidden_faults(error))])
    details: dict[str, object] = {"code": error.code, "correlation_id": correlation_id}
    if error.retry_after_s is not None:
        details["retry_after_s"] = error.retry_after_s
    meta: dict[str, object] = {"gateway/error": details}
    if isinstance(error, ApprovalRequired):
        meta[APPROVAL_META] = dict(error.approval)
    return b"".join(
        (
            b'"content":[{"type":"text","text":',
            quote(text),
            b"}",
            error.content if isinstance(error, OutputRejected) else b"",
            b'],"isError":true,"_meta":',
            orjson.dumps(meta),
        )
    )


def decode(members: bytes) -> dict[str, Any]:
    """Decode the members to a result object; integers are exact.

    Raises:
        HandlerFailed: an integer has more than 4,300 digits, the limit of Python.
    """
    try:
        result: dict[str, Any] = json.loads(b"{" + members + b"}")
    except ValueError as error:
        raise HandlerFailed(_TOO_MANY_DIGITS) from error
    return result


def internal_error(correlation_id: str) -> bytes:
    """Return the members of an error result that contains a fixed message and the correlation id of the log line."""
    return failure(HandlerFailed(CRASHED), correlation_id)


def _hidden_faults(error: GatewayError) -> Sequence[Fault]:
    """Return the faults; none if the message already contains the pointer and the reason of the only fault."""
    is_explained = len(error.faults) == 1 and all(
        part in error.message for part in (error.faults[0].pointer, error.faults[0].reason)
    )
    return () if is_explained else error.faults


def _rendered(response: UpstreamResponse, link: str | None, is_whole: bool, has_schema: bool) -> bytes:
    """The members of the result for this body."""
    kind, parameters = kind_of(response)
    is_whole_text = is_whole and not has_schema  # guard: text-with-schema-cut
    if not is_json(kind):
        return _by_kind(kind, response, link, is_whole_text)
    if len(response.body) > MAX_TEXT_BYTES and has_many_parts(response.body):
        return _with_many_parts(response, link, is_whole, is_whole_text=is_whole_text)
    compact = _compacted(response.body, parameters)
    if compact is None:
        return _text(_decoded(response, is_whole_text), response, link, is_whole_text)
    if len(compact) > MAX_TEXT_BYTES and not is_whole:
        return _cut_structure(cut_json(compact, MAX_TEXT_BYTES), response, link)
    if len(compact) > MAX_TEXT_BYTES:  # a document, which keeps members of one name; the summary is its text
        return b"".join((WHOLE_START, compact, b',"isError":false'))
    if has_repeated_names(compact):  # guard: repeated-names
        return _blocks(compact.decode(), _REPEATED)
    if compact == b"null":  # the SDK drops a member that is null, so there is no structured content
        return _TEXT_START + b'"null"}],"isError":false'
    return b"".join((_TEXT_START, _quoted(compact), b'}],"structuredContent":', compact, b',"isError":false'))


def _with_many_parts(response: UpstreamResponse, link: str | None, is_whole: bool, *, is_whole_text: bool) -> bytes:
    """The members of the result for JSON with very many parts: only its start is read.

    The check that all of it is JSON holds the interpreter lock for up to 50 ms. It is made if the whole is kept, or if
    the start is no JSON in UTF-8.
    """
    start = None if is_whole else _start_of(response.body)
    if start is not None:
        return _cut_structure(start, response, link)
    raw = _as_json(response.body, kind_of(response)[1])
    if raw is None:
        return _text(_decoded(response, is_whole_text), response, link, is_whole_text)
    if is_whole:
        return b"".join((WHOLE_START, raw, b',"isError":false'))
    return _cut_structure(cut_start(raw, MAX_TEXT_BYTES), response, link)


def _start_of(body: bytes) -> Truncated | None:
    """The start of a body that is JSON in UTF-8 as far as it is shown; None if it is not, or if nothing fits."""
    try:
        cut = cut_start(body, MAX_TEXT_BYTES)
        cut.kept.decode()
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return None if cut.kept == b"null" else cut  # guard: start-that-is-json


def _by_kind(kind: str, response: UpstreamResponse, link: str | None, is_whole: bool) -> bytes:
    family, body = kind.partition("/")[0], response.body
    is_media = family in {"image", "audio"} and not kind.endswith("+xml")
    if not is_media and (is_text(kind) or (not kind and is_utf8(body))):
        return _text(_decoded(response, is_whole, is_xml=kind.endswith("xml")), response, link, is_whole)
    if link is not None and len(body) > MAX_BINARY_BYTES:
        return _blocks(describe(Truncated(b""), whole=len(body), uri=link), _link(response, link))
    if is_media:
        return _blocks({"type": family, "data": b64encode(body).decode(), "mimeType": kind})
    # a multipart body is unreadable without the boundary in its content type
    whole = response.content_type[:MAX_TYPE_LENGTH] if family == "multipart" else kind
    resource = {
        "uri": "about:blank#upstream-body",
        "mimeType": whole or "application/octet-stream",
        "blob": b64encode(body).decode(),
    }
    return _blocks({"type": "resource", "resource": resource})


def _cut_structure(cut: Truncated, response: UpstreamResponse, link: str | None) -> bytes:
    """Truncated JSON as text and structured content, with a note and a link to the complete body."""
    note = describe(cut, whole=len(response.body), uri=link)
    kept = cut.kept.decode("utf-8", "replace")
    blocks = _blocks(kept, note, _link(response, link))
    if kept == "null":
        return blocks
    if has_repeated_names(cut.kept):
        return _blocks(kept, note, _REPEATED, _link(response, link))
    start = blocks[: -len(_END)]
    return b"".join((start, b'],"structuredContent":', kept.encode(), b',"isError":false'))


def _text(text: str, response: UpstreamResponse, link: str | None, is_whole: bool) -> bytes:
    if response.cut is None and (is_whole or len(text) * 4 <= MAX_TEXT_BYTES):
        return _TEXT_START + quote(text) + b'}],"isError":false'
    cut = cut_text(text, MAX_WHOLE_BYTES if is_whole else MAX_TEXT_BYTES, whole=len(response.body))
    unread = None if response.cut is None else f"This result is cut: {response.cut}."
    if not cut.notes:
        return _blocks(text, unread)
    note = describe(cut, whole=len(response.body), uri=link)
    return _blocks(cut.kept.decode(), note, unread, _link(response, link))


def _blocks(*blocks: str | dict[str, object] | None) -> bytes:
    """The members of a result with these blocks; a string becomes a text block, None is omitted."""
    written = [
        b'{"type":"text","text":' + quote(block) + b"}" if isinstance(block, str) else orjson.dumps(block)
        for block in blocks
        if block is not None
    ]
    return b'"content":[' + b",".join(written) + _END


def _link(response: UpstreamResponse, uri: str | None) -> dict[str, object] | None:
    if uri is None:
        return None
    return {
        "type": "resource_link",
        "uri": uri,
        "name": "whole result",
        "mimeType": kind_of(response)[0] or "application/octet-stream",
        "size": len(response.body),
    }


def _compacted(body: bytes, parameters: str) -> bytes | None:
    """The body as JSON text without whitespace, in UTF-8; None when it is not JSON. Other charsets are converted."""
    compact = _minified(body)
    if compact is None and (charset := declared_charset(parameters) or _marked_charset(body)) is not None:
        try:
            compact = _minified(body.decode(charset).encode())
        except UnicodeError:
            return None
    return compact


def _marked_charset(body: bytes) -> str | None:
    """The charset of a body that begins with a byte order mark, which JSON should not have."""
    if body.startswith(b"\xef\xbb\xbf"):
        return "utf-8-sig"
    return "utf-16" if body.startswith((b"\xff\xfe", b"\xfe\xff")) else None


def _decoded(response: UpstreamResponse, is_whole: bool, *, is_xml: bool = False) -> str:
    """The text of the response; of a text that will be cut, a start that is long enough in every charset."""
    body = response.body if is_whole else response.body[:MAX_DECODED_BYTES]
    return decode_text(body, kind_of(response)[1], is_xml=is_xml)


def _as_json(body: bytes, parameters: str) -> bytes | None:
    """The body if it is JSON in UTF-8, or its conversion to UTF-8; None if it is not JSON. No objects are made."""
    if _is_json(body):
        return body
    charset = declared_charset(parameters) or _marked_charset(body)
    if charset is None:
        return None
    try:
        converted = body.decode(charset).encode()
    except UnicodeError:
        return None
    return converted if _is_json(converted) else None


def _is_json(raw: bytes) -> bool:
    decoder, view = getincrementaldecoder("utf-8")(), memoryview(raw)
    try:
        msgspec.json.decode(raw, type=msgspec.Raw)
        for start in range(0, len(raw), CHECKED_BYTES):
            decoder.decode(view[start : start + CHECKED_BYTES])
        decoder.decode(b"", final=True)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    return True


def _minified(body: bytes) -> bytes | None:
    try:
        compact = msgspec.json.format(body, indent=-1)
        compact.decode()
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return compact


def _quoted(compact: bytes) -> bytes:
    return orjson.dumps(compact.decode())
