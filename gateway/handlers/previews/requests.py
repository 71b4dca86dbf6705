"""Previews of requests for the user's confirmation: method, URL, headers except Accept, and body, up to fixed lengths.

Values under names of credentials are replaced by `***`; in JSON only strings and strings in lists, because a number is
usually a count, such as `max_tokens`. Stored credentials are redacted as well. Unprintable characters are escaped, so
that a caller's text can neither imitate another line nor reverse the reading direction.
"""

import re
from collections.abc import Iterator
from urllib.parse import unquote_plus

from gateway.definitions.credential_names import is_credential_name
from gateway.domain.http.requests import UpstreamRequest, UpstreamResponse
from gateway.domain.identifiers import TenantId
from gateway.domain.text_search.invisible import ESCAPED
from gateway.handlers.redaction.redaction import Credentials, Redaction
from gateway.handlers.response_body.kinds import is_utf8

MAX_PREVIEW_LENGTH = 12_000
"""Limit on the characters of one preview."""

_MAX_URL_LENGTH = 2_000
_MAX_BODY_LENGTH = 4_000
_MAX_VALUE_LENGTH = 500
_MAX_HEADERS = 20
_MAX_PARTS = 20
_BYTES_EXAMINED = 8
"""Bytes of a body that are escaped per shown character; enough for any character, and cheap enough."""
_HIDDEN = "***"
_JSON_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*+)(?:"|\Z)(\s*+:)?|[\[{]|[\]}]', re.DOTALL)
"""A JSON string, with the colon if it is the name of a member, or a bracket. The quantifiers never backtrack."""
_UNPRINTABLE = re.compile(r"[^\x20-\x7e]")
_UNREMARKABLE = frozenset({"accept"})


def show_request(request: UpstreamRequest, *, longest_body: int = _MAX_BODY_LENGTH) -> str:
    """Return method and URL on one line, then headers and body on lines of their own."""
    lines = [f"{request.method} {truncate(_blank_query(escape(request.url)), _MAX_URL_LENGTH)}", *_headers(request)]
    if request.body:
        lines += ["", *_body(request.body, _type_of(request), longest_body)]
    return "\n".join(lines)


def show_json(written: bytes, max_length: int = _MAX_BODY_LENGTH) -> str:
    """Return JSON on one line, for example the arguments of a call."""
    return _content(written, "json", max_length)


async def finish(tenant: TenantId, text: str, redaction: Redaction, credentials: Credentials) -> str:
    """Return the preview with stored credentials redacted, cut to `MAX_PREVIEW_LENGTH`."""
    if credentials:  # guard: preview-stored-credentials
        response = UpstreamResponse(
            status=200, content_type="text/plain", body=text.encode("utf-8", "backslashreplace")
        )
        text = (await redaction.apply(tenant, response, credentials)).body.decode("utf-8", "replace")
    return truncate(text, MAX_PREVIEW_LENGTH)


def escape(text: str) -> str:
    """Return the text with each unprintable or invisible character escaped, such as `\\n` or `\\u202e`."""
    return _UNPRINTABLE.sub(_escaped, text)  # guard: preview-lines


def truncate(text: str, max_length: int) -> str:
    """Return the text up to a length in characters; a cut text ends with its total length."""
    return text if len(text) <= max_length else f"{text[:max_length]}… ({len(text)} characters in all)"


def blank_members(text: str) -> str:
    """Return JSON in which the strings of members with credential names, also in lists, are replaced by `***`."""
    levels = [(False, False)]  # for each open bracket: whether it is a list, and whether its next string is hidden
    blanked: list[str] = []
    end = 0
    for token in _JSON_TOKEN.finditer(text):
        mark = token[0][0]
        is_list, is_hidden = levels[-1]
        if mark in "[{":
            levels.append((mark == "[", mark == "[" and is_hidden))
        elif mark in "]}":
            if len(levels) > 1:
                levels.pop()
        elif token[2]:
            levels[-1] = (is_list, is_credential_name(token[1]))  # guard: preview-named-credentials
        elif is_hidden:
            blanked += (text[end : token.start()], f'"{_HIDDEN}"')
            end = token.end()
            levels[-1] = (is_list, is_list)  # the strings that follow it in a list are hidden too
    return "".join((*blanked, text[end:]))


def _headers(request: UpstreamRequest) -> Iterator[str]:
    shown = [(name, value) for name, value in request.headers if name.lower() not in _UNREMARKABLE]
    for name, value in shown[:_MAX_HEADERS]:
        shown_value = _HIDDEN if is_credential_name(name) else truncate(escape(value), _MAX_VALUE_LENGTH)
        yield f"{escape(name)}: {shown_value}"
    if len(shown) > _MAX_HEADERS:
        yield f"and {len(shown) - _MAX_HEADERS} further headers"


def _body(body: bytes, content_type: str, max_length: int) -> Iterator[str]:
    _, mark, boundary = content_type.partition("boundary=")
    if not mark:
        yield _content(body, content_type, max_length)
        return
    parts = body.split(b"--" + boundary.strip('"').encode())[1:-1]
    for part in parts[:_MAX_PARTS]:
        head, _, content = part.partition(b"\r\n\r\n")
        head = head[: _BYTES_EXAMINED * _MAX_VALUE_LENGTH]
        headers = escape(" ".join(head.decode("utf-8", "backslashreplace").split()))
        name = "".join(re.findall(r' name="([^"]*)"', headers)[:1])
        shown_content = (
            _HIDDEN if is_credential_name(name) else _content(content.removesuffix(b"\r\n"), headers, max_length // 4)
        )
        yield f"{truncate(headers, _MAX_VALUE_LENGTH)}: {shown_content}"
    if len(parts) > _MAX_PARTS:
        yield f"and {len(parts) - _MAX_PARTS} further parts"


def _content(body: bytes, content_type: str, max_length: int) -> str:
    """Return the text of a body, or its size if it is not text."""
    head = body[: _BYTES_EXAMINED * max_length]
    if not is_utf8(head):
        return f"({len(body)} bytes that are not text)"
    text = head.decode("utf-8", "ignore")
    if "json" in content_type.lower():
        text = blank_members(text)
    elif "form-urlencoded" in content_type.lower():
        text = _blank_pairs(text)
    text = escape(text)  # escaped last, because escaped line ends would separate a name from its value
    return (
        text
        if len(text) <= max_length and len(body) == len(head)
        else f"{text[:max_length]}… ({len(body)} bytes in all)"
    )


def _type_of(request: UpstreamRequest) -> str:
    return next((value for name, value in request.headers if name.lower() == "content-type"), "")


def _blank_query(url: str) -> str:
    path, mark, query = url.partition("?")
    return f"{path}{mark}{_blank_pairs(query)}"


def _blank_pairs(text: str) -> str:
    return "&".join(map(_blank_pair, text.split("&")))


def _blank_pair(pair: str) -> str:
    name, mark, value = pair.partition("=")
    return f"{name}={_HIDDEN}" if value and is_credential_name(unquote_plus(name)) else name + mark + value


def _escaped(found: re.Match[str]) -> str:
    character = found[0]
    if character.isprintable() and ESCAPED.match(character) is None:  # guard: preview-invisible-letters
        return character
    return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(character) or f"\\u{ord(character):04x}"
