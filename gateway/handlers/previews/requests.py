"""Previews of requests for the user's confirmation: method, URL, headers except Accept, and body, up to fixed lengths.

A long body is shown with its start and its end, so that padding does not hide the last members.
Values under names of credentials are replaced by `***`; in JSON only strings and strings in lists, because a number is
usually a count, such as `max_tokens`. Stored credentials are redacted as well. Unprintable characters are escaped, so
that a caller's text can neither imitate another line nor reverse the reading direction.
"""

import re
from collections.abc import Callable, Iterator
from urllib.parse import unquote_plus

from gateway.definitions.credential_names import is_credential_name
from gateway.domain.http.requests import UpstreamRequest, UpstreamResponse
from gateway.domain.identifiers import TenantId
from gateway.domain.text_search.invisible import ESCAPED
from gateway.handlers.previews.limits import (
    MAX_PREVIEW_LENGTH,
    MAX_QUOTES,
    MAX_SHOWN_BODY_LENGTH,
    MAX_SHOWN_HEADERS,
    MAX_SHOWN_PARTS,
    MAX_SHOWN_URL_LENGTH,
    MAX_SHOWN_VALUE_LENGTH,
)
from gateway.handlers.redaction.redaction import Credentials, Redaction
from gateway.handlers.response_body.kinds import is_utf8

_BYTES_EXAMINED = 8
"""Bytes of a body that are escaped per shown character; enough for any character, and cheap enough."""
_TAIL_SHARE = 4
"""Divisor of a shown length: the part that shows the end of a cut text."""
_HIDDEN = "***"
_JSON_QUOTE = re.compile(r'(?<!\\)(?:\\\\)*+"')
"""A quote that begins or ends a JSON string, with the escaped backslashes before it."""
_JSON_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*+)(?:"|\\?\Z)(\s*+:)?|[\[{]|[\]}]', re.DOTALL)
"""A JSON string, with the colon if it is the name of a member, or a bracket. The quantifiers never backtrack."""
_JSON_NAME = re.compile(r'"((?:[^"\\]|\\.){0,200}+)"\s*+:\s*+\Z')
_ESCAPED_ENDS = frozenset(bytes((before, 92)) for before in range(256) if before != ord("\\"))
"""Two bytes before an escaped quote: one backslash, and any other byte."""
_UNPRINTABLE = re.compile(r"[^\x20-\x7e]")
_UNREMARKABLE = frozenset({"accept"})


def show_request(request: UpstreamRequest, *, longest_body: int = MAX_SHOWN_BODY_LENGTH) -> str:
    """Return method and URL on one line, then headers and body on lines of their own."""
    lines = [
        f"{request.method} {truncate(_blank_query(escape(request.url)), MAX_SHOWN_URL_LENGTH)}",
        *_headers(request),
    ]
    if request.body:
        lines += ["", *_body(request.body, _type_of(request), longest_body)]
    return "\n".join(lines)


def show_json(written: bytes, max_length: int = MAX_SHOWN_BODY_LENGTH) -> str:
    """Return JSON on one line, for example the arguments of a call."""
    return _content(written, "json", max_length)


async def finish(tenant: TenantId, text: str, redaction: Redaction, credentials: Credentials) -> str:
    """Return the preview with stored credentials redacted, cut to `MAX_PREVIEW_LENGTH`."""
    if credentials:  # guard: preview-stored-credentials
        response = UpstreamResponse(
            status=200, content_type="text/plain", body=text.encode("utf-8", "backslashreplace")
        )
        text = (await redaction.apply(tenant, response, credentials)).body.decode("utf-8", "replace")
    return _truncate_middle(text, MAX_PREVIEW_LENGTH, f"({len(text)} characters in all)")


def escape(text: str) -> str:
    """Return the text with each unprintable or invisible character escaped, such as `\\n` or `\\u202e`."""
    return _UNPRINTABLE.sub(_escaped, text)  # guard: preview-lines


def truncate(text: str, max_length: int) -> str:
    """Return the text up to a length in characters; a cut text ends with its total length."""
    return text if len(text) <= max_length else f"{text[:max_length]}… ({len(text)} characters in all)"


def blank_members(text: str, *, is_hidden: bool = False) -> str:
    """Return JSON in which the strings of members with credential names, also in lists, are replaced by `***`.

    With `is_hidden`, strings before the first member name are replaced too.
    """
    levels = [
        (is_hidden, is_hidden)
    ]  # for each open bracket: whether it is a list, and whether its next string is hidden
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
    for name, value in shown[:MAX_SHOWN_HEADERS]:
        shown_value = _HIDDEN if is_credential_name(name) else truncate(escape(value), MAX_SHOWN_VALUE_LENGTH)
        yield f"{escape(name)}: {shown_value}"
    if len(shown) > MAX_SHOWN_HEADERS:
        yield f"and {len(shown) - MAX_SHOWN_HEADERS} further headers"


def _body(body: bytes, content_type: str, max_length: int) -> Iterator[str]:
    _, mark, boundary = content_type.partition("boundary=")
    if not mark:
        yield _content(body, content_type, max_length)
        return
    parts = body.split(b"--" + boundary.strip('"').encode())[1:-1]
    omitted = len(parts) - MAX_SHOWN_PARTS
    for number, part in enumerate(parts):
        if omitted > 0 and MAX_SHOWN_PARTS // 2 <= number < MAX_SHOWN_PARTS // 2 + omitted:
            continue
        head, _, content = part.partition(b"\r\n\r\n")
        head = head[: _BYTES_EXAMINED * MAX_SHOWN_VALUE_LENGTH]
        headers = escape(" ".join(head.decode("utf-8", "backslashreplace").split()))
        name = "".join(re.findall(r' name="([^"]*)"', headers)[:1])
        shown_content = (
            _HIDDEN if is_credential_name(name) else _content(content.removesuffix(b"\r\n"), headers, max_length // 4)
        )
        yield f"{truncate(headers, MAX_SHOWN_VALUE_LENGTH)}: {shown_content}"
    if omitted > 0:
        yield f"and {omitted} further parts"


def _content(body: bytes, content_type: str, max_length: int) -> str:
    """Return the text of a body, or its size if it is not text."""
    head = body[: _BYTES_EXAMINED * max_length]
    if not is_utf8(head):
        return f"({len(body)} bytes that are not text)"
    blank, blank_end = _blanking(content_type.lower())
    text = escape(blank(head.decode("utf-8", "ignore")))  # escaped last, because line ends separate names from values
    if len(text) <= max_length and len(body) == len(head):
        return text
    start = len(body) - _BYTES_EXAMINED * max_length // _TAIL_SHARE
    return _join_ends(text, escape(blank_end(body, max(0, start))), max_length, f"({len(body)} bytes in all)")


def _blanking(content_type: str) -> tuple[Callable[[str], str], Callable[[bytes, int], str]]:
    """Return the functions that blank credentials in the start of a text of this type, and in the end from a place."""
    if "json" in content_type:
        return blank_members, _last_members
    if "form-urlencoded" in content_type:
        return _blank_pairs, _last_pairs
    return str, lambda body, start: body[start:].decode("utf-8", "ignore")


def _last_members(body: bytes, start: int) -> str:
    """Return the end of a JSON text, with credentials replaced.

    JSON ends outside of strings, so an odd number of quotes means that the end begins in a string. Other strings before
    the first member name can belong to a credential and are hidden.
    """
    while body[start : start + 1] in {b"\\", b'"'}:  # a backslash before the cut could have escaped this quote
        start += 1
    text = body[start:].decode("utf-8", "ignore")
    quotes = [found.end() for found in _JSON_QUOTE.finditer(text)]
    if len(quotes) % 2 == 0:
        return blank_members(text, is_hidden=True)
    name = _name_of_string(body, start)
    first = text[: quotes[0] - 1] if name is not None and not is_credential_name(name) else _HIDDEN
    return f'{first}"{blank_members(text[quotes[0] :], is_hidden=True)}'


def _name_of_string(body: bytes, place: int) -> str | None:
    """Return the name of the member whose string contains a place of a JSON text; None if it is not found."""
    for _ in range(MAX_QUOTES):
        place = body.rfind(b'"', 0, max(0, place))
        if body[max(0, place - 2) : max(0, place)] in _ESCAPED_ENDS:
            continue
        before = body[max(0, place - MAX_SHOWN_VALUE_LENGTH) : max(0, place)]
        if (len(before) - len(before.rstrip(b"\\"))) % 2 == 0:  # this quote begins the string
            found = _JSON_NAME.search(before.decode("utf-8", "ignore"))
            return None if found is None else found[1]
    return None


def _last_pairs(body: bytes, start: int) -> str:
    _, mark, whole = body[start:].decode("utf-8", "ignore").partition("&")
    return _blank_pairs(whole) if mark else _HIDDEN


def _truncate_middle(text: str, max_length: int, mark: str) -> str:
    return text if len(text) <= max_length else _join_ends(text, text, max_length, mark)


def _join_ends(head: str, tail: str, max_length: int, mark: str) -> str:
    """Return the start of one text and the end of another one, with a mark between them."""
    shown = max_length // _TAIL_SHARE
    return f"{head[: max_length - shown]}… {mark} …{tail[-shown:]}"


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
