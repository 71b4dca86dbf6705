"""Error results for upstream responses with a status of 300 or above: status, hints, and the beginning of the body."""

from urllib.parse import urlsplit

import orjson

from gateway.calls.limits import MAX_ERROR_BODY_LENGTH, MAX_HINT_LENGTH
from gateway.calls.upstream_head import META, head_meta, shown_headers, status_line
from gateway.domain.http.requests import UpstreamResponse
from gateway.handlers.response_body.charsets import decode_text
from gateway.handlers.response_body.kinds import is_json, is_text, is_utf8, kind_of

FIRST_ERROR = 300

_FIRST_REFUSAL = 400


def error_result(response: UpstreamResponse) -> bytes:
    """Return the members of an error result; a redirect is an error, because redirects are not followed."""
    lines = [status_line(response.status)]
    meta = head_meta(response.status, shown_headers(response))
    if response.location is not None and response.status < _FIRST_REFUSAL:
        host = _host_of(response.location)
        lines.append(f"The upstream redirects to {host}; redirects are not followed.")
        meta["location_host"] = host
    if response.retry_after is not None:
        hint = " ".join(response.retry_after.split())[:MAX_HINT_LENGTH]
        lines.append(f"Retry-After: {hint}")
        meta["retry_after"] = hint
    body_text = _shown_body(response)
    text = "\n".join([*lines, *([body_text] if body_text else [])])
    return b"".join(
        (
            b'"content":[{"type":"text","text":',
            quote(text),
            b'}],"isError":true,"_meta":',
            orjson.dumps({META: meta}),
        )
    )


def _shown_body(response: UpstreamResponse) -> str:
    """The beginning of an error's body if it is text; otherwise its size and type."""
    if not response.body:
        return ""
    kind, parameters = kind_of(response)
    head = response.body[: MAX_ERROR_BODY_LENGTH * 4]
    if is_json(kind) or is_text(kind) or is_utf8(head):
        return decode_text(head, parameters)[:MAX_ERROR_BODY_LENGTH]
    return f"({len(response.body)} bytes of {kind or 'an unnamed type'})"


def _host_of(location: str) -> str:
    """The host of a redirect without the rest of the location, which may contain secrets."""
    try:
        host = urlsplit(location).hostname
    except ValueError:
        host = None
    return "".join(character for character in (host or "") if character.isprintable())[:255] or "the same host"


def quote(text: str) -> bytes:
    """Return the text as a JSON string; lone surrogates are replaced."""
    try:
        return orjson.dumps(text)
    except TypeError:  # lone surrogates
        return orjson.dumps(text.encode("utf-8", "replace").decode())
