"""How an upstream's answer becomes the inside of a tool result (MCP `CallToolResult`), as JSON bytes.

A JSON body is checked and minified in C and put in as it is, so that numbers stay as they were written; it never
becomes Python objects. Callers put braces around what they get.
"""

from base64 import b64encode
from http import HTTPStatus

import msgspec
import orjson

from gateway.domain.requests import UpstreamAnswer
from gateway.errors import GatewayError

_MAX_ERROR_BODY = 2048
_FIRST_ERROR = 300
_PHRASES = {status.value: status.phrase for status in HTTPStatus}
_NOTHING = b'"content":[],"isError":false'


def content(answer: UpstreamAnswer) -> bytes:
    """The members of the result for this answer; a status that is no success makes it an error."""
    if answer.status >= _FIRST_ERROR:
        return _refusal(answer)
    if not answer.body:
        return _NOTHING
    kind, _, parameters = answer.content_type.partition(";")
    kind = kind.strip().lower()
    if kind == "application/json" or kind.endswith("+json"):
        compact = _minified(answer.body)
        if compact == b"null":  # the SDK drops a member that is null, so there is none
            return _text("null")
        if compact is not None:
            return b"".join(
                (
                    b'"content":[{"type":"text","text":',
                    _quoted(compact),
                    b'}],"structuredContent":',
                    compact,
                    b',"isError":false',
                )
            )
        return _text(_decoded(answer.body, parameters))
    return _by_kind(kind, parameters, answer.body)


def failure(error: GatewayError, correlation_id: str) -> bytes:
    """The members of an error result: what was wrong, where, and what to quote to the operator."""
    text = "\n".join([error.message, *(f"{fault.pointer or '/'}: {fault.reason}" for fault in error.faults)])
    return b"".join(
        (
            b'"content":[{"type":"text","text":',
            _quoted_text(text),
            b'}],"isError":true,"_meta":{"gateway/error":',
            orjson.dumps({"code": error.code, "correlation_id": correlation_id}),
            b"}",
        )
    )


def crash(correlation_id: str) -> bytes:
    """The members of an error result that tells nothing but how to find the log line."""
    return failure(GatewayError("the call failed inside the gateway"), correlation_id)


def _by_kind(kind: str, parameters: str, body: bytes) -> bytes:
    family = kind.partition("/")[0]
    if family in {"image", "audio"} and not kind.endswith("+xml"):
        members = {"type": family, "data": b64encode(body).decode(), "mimeType": kind}
        return b'"content":[' + orjson.dumps(members) + b'],"isError":false'
    if _is_text(kind) or (not kind and _is_utf8(body)):
        return _text(_decoded(body, parameters))
    resource = {
        "uri": "about:blank#upstream-body",
        "mimeType": kind or "application/octet-stream",
        "blob": b64encode(body).decode(),
    }
    return b'"content":[' + orjson.dumps({"type": "resource", "resource": resource}) + b'],"isError":false'


def _refusal(answer: UpstreamAnswer) -> bytes:
    phrase = _PHRASES.get(answer.status, "")
    kind, _, parameters = answer.content_type.partition(";")
    body = ""
    if answer.body and (_is_text(kind.strip().lower()) or _is_utf8(answer.body[:_MAX_ERROR_BODY])):
        body = _decoded(answer.body[: _MAX_ERROR_BODY + 4], parameters)[:_MAX_ERROR_BODY]
    elif answer.body:
        body = f"({len(answer.body)} bytes of {kind.strip() or 'an unnamed type'})"
    lines = [f"HTTP {answer.status} {phrase}".rstrip(), *([body] if body else [])]
    meta: dict[str, object] = {"status": answer.status}
    if answer.retry_after is not None:
        lines.insert(1, f"Retry-After: {answer.retry_after}")
        meta["retry_after"] = answer.retry_after
    return b"".join(
        (
            b'"content":[{"type":"text","text":',
            _quoted_text("\n".join(lines)),
            b'}],"isError":true,"_meta":{"gateway/upstream":',
            orjson.dumps(meta),
            b"}",
        )
    )


def _text(text: str) -> bytes:
    return b'"content":[{"type":"text","text":' + _quoted_text(text) + b'}],"isError":false'


def _minified(body: bytes) -> bytes | None:
    try:
        compact = msgspec.json.format(body, indent=-1)
        compact.decode()
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return compact


def _quoted(compact: bytes) -> bytes:
    return orjson.dumps(compact.decode())


def _quoted_text(text: str) -> bytes:
    try:
        return orjson.dumps(text)
    except TypeError:  # lone surrogates
        return orjson.dumps(text.encode("utf-8", "replace").decode())


def _decoded(body: bytes, parameters: str) -> str:
    charset = "utf-8"
    for part in parameters.split(";"):
        name, _, value = part.partition("=")
        if name.strip().lower() == "charset":
            charset = value.strip().strip("\"'") or charset
    try:
        return body.decode(charset, "replace")
    except LookupError:
        return body.decode("utf-8", "replace")


def _is_text(kind: str) -> bool:
    return (
        kind.startswith("text/")
        or kind.endswith(("+xml", "/xml", "+json", "/json", "+yaml", "/yaml"))
        or kind in _TEXTUAL
    )


_TEXTUAL = frozenset(
    {"application/javascript", "application/x-www-form-urlencoded", "application/x-ndjson", "application/graphql"}
)


def _is_utf8(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError as error:
        return error.start >= len(body) - 3 and b"\0" not in body
    return b"\0" not in body
