"""Differences in readable form: limited excerpts, escaped invisible characters, strings cut to their differing
parts.
"""

import re

import orjson

from gateway.domain.text_search.invisible import ESCAPED
from gateway.domain.updates.source_changes import Difference, DifferenceKind, Impact
from gateway.openapi.review.limits import MAX_EXCERPT_LENGTH

_CONTEXT = 40


def make_difference(kind: DifferenceKind, impact: Impact, pointer: str, *, old: object, new: object) -> Difference:
    """Return a difference with excerpts of both values; None represents an absent value."""
    if isinstance(old, str) and isinstance(new, str):
        before, after = _differing_parts(old, new)
        return Difference(kind=kind, impact=impact, pointer=pointer, old=before, new=after)
    shown = (None if value is None else show(value) for value in (old, new))
    return Difference(kind=kind, impact=impact, pointer=cut(pointer), old=next(shown), new=next(shown))


def show(value: object) -> str:
    """Return a JSON value as a bounded string."""
    return cut(value if isinstance(value, str) else orjson.dumps(value).decode())


def cut(text: str) -> str:
    """Return the text with invisible characters escaped, cut to `MAX_EXCERPT_LENGTH` characters."""
    shown = ESCAPED.sub(_escape, text[: MAX_EXCERPT_LENGTH + 1])
    return (
        shown
        if len(text) <= MAX_EXCERPT_LENGTH and len(shown) <= MAX_EXCERPT_LENGTH
        else f"{shown[: MAX_EXCERPT_LENGTH - 1]}…"
    )


def _differing_parts(old: str, new: str) -> tuple[str, str]:
    """The parts of two strings that differ, each with some characters around it."""
    start, shortest = 0, min(len(old), len(new))
    while start < shortest and old[start] == new[start]:
        start += 1
    end = 0
    while end < shortest - start and old[-1 - end] == new[-1 - end]:
        end += 1
    return _around(old, start, len(old) - end), _around(new, start, len(new) - end)


def _around(text: str, start: int, end: int) -> str:
    first, last = max(0, start - _CONTEXT), min(len(text), end + _CONTEXT)
    return cut(f"{'…' if first else ''}{text[first:last]}{'…' if last < len(text) else ''}")


def _escape(found: re.Match[str]) -> str:
    return f"\\u{{{ord(found[0]):x}}}"
