"""Text form of an approval's HTTP request, and the line difference between two requests.

JSON is indented without changing a token, so a repeated member and the digits of a number stay visible. Unprintable
characters are escaped. The text is limited in lines and characters.
"""

from collections.abc import Sequence
from difflib import unified_diff

import msgspec

from gateway.domain.calls.approvals import RequestShown
from gateway.handlers.previews.requests import escape, truncate
from gateway.web.console.limits import MAX_COMPARED, MAX_FORMATTED_LENGTH, MAX_LINE_LENGTH, MAX_SHOWN_BODY_LENGTH

_CONTEXT = 3


def request_lines(request: RequestShown) -> Sequence[str]:
    """Return method and URL, headers, an empty line and the body as lines of any length."""
    first = f"{request.method} {request.url}" if request.method else request.url
    lines = [first, *(f"{name}: {value}" for name, value in request.headers)]
    if request.body:
        lines += ["", *_indented(request.body).split("\n")]
    return [escape(line) for line in lines]


def show_lines(lines: Sequence[str]) -> str:
    """Return the lines as one text. Long lines and the text itself are truncated; a truncated text ends with a note."""
    return truncate("\n".join(truncate(line, MAX_LINE_LENGTH) for line in lines), MAX_SHOWN_BODY_LENGTH)


def compare_lines(before: Sequence[str], now: Sequence[str]) -> Sequence[tuple[str, str]] | None:
    """Return the changed lines with context, each with its sign: `+`, `-`, a blank or `@`.

    None if a request has too many lines.
    """
    if max(len(before), len(now)) > MAX_COMPARED:  # guard: console-difference-bounded
        return None
    # skip the two header lines with file names
    compared = list(unified_diff(list(before), list(now), lineterm="", n=_CONTEXT))[2:]
    return [(line[0], truncate(line[1:], MAX_LINE_LENGTH)) for line in compared]


def _indented(body: str) -> str:
    raw = body.encode("utf-8", "backslashreplace")
    if len(raw) > MAX_FORMATTED_LENGTH or raw.count(b"[") + raw.count(b"{") > MAX_SHOWN_BODY_LENGTH:
        return body
    try:
        return msgspec.json.format(raw, indent=2).decode()
    except (msgspec.DecodeError, RecursionError):
        return body
