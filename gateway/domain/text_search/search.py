"""Searches of one text for patterns, in overlapping windows of its normalised views.

Callers limit the size of the text; every step is linear in it.
"""

import re
from collections.abc import Iterator, Mapping

from gateway.domain.text_search.checksums import has_card, has_iban
from gateway.domain.text_search.guardrail_checks import GuardrailCheck
from gateway.domain.text_search.normalization import (
    fold,
    fold_spaced,
    has_invisible,
    shorten_gaps,
    views,
    without_ascii,
    words_of,
)
from gateway.domain.text_search.patterns import PHRASES, is_in, patterns_of

WINDOW = 16 * 1024
_OVERLAP = 1024
"""Overlap of two windows in characters; longer than any match, because gaps in a match are shortened."""
_HIDDEN = "hidden-text"
_LINE_BREAK = re.compile(r"(?<![ \t\r])[ \t\r]*\n[\s>|]*")
"""A line break with indentation and the marks of a quotation; a key that is wrapped in a mail has them.

A match begins where the white space does, so that a long run of it is read once.
"""
_VERIFIED = {"card": has_card, "iban": has_iban}


def search(check: GuardrailCheck, chosen: tuple[str, ...], text: str) -> tuple[str, ...]:
    """Return the names of the patterns that match the text, in the order of the patterns."""
    return search_all({check: chosen}, text)[check]


def search_all(checks: Mapping[GuardrailCheck, tuple[str, ...]], text: str) -> Mapping[GuardrailCheck, tuple[str, ...]]:
    """Return the names of the matching patterns of several checks; the text is normalised once."""
    wanted = {check: patterns_of(check, chosen) for check, chosen in checks.items()}
    injection = wanted.get(GuardrailCheck.INJECTION, ())
    found: set[tuple[GuardrailCheck, str]] = set()
    unusual = "" if not injection or text.isascii() else without_ascii(text)
    if _HIDDEN in injection and _is_hidden(unusual) and _is_hidden(text):
        found.add((GuardrailCheck.INJECTION, _HIDDEN))
    has_two_forms = has_invisible(unusual)
    for undo in (fold, fold_spaced) if has_two_forms else (fold,):
        for window in _windows(shorten_gaps(text, undo)):  # guard: guardrail-gaps
            for view in views(window):
                for check, names in wanted.items():
                    found.update((check, name) for name in _search_view(check, names, view))
    return {check: tuple(name for name in names if (check, name) in found) for check, names in wanted.items()}


def _windows(text: str) -> Iterator[str]:
    for start in range(0, max(1, len(text) - _OVERLAP), WINDOW - _OVERLAP):
        yield text[start : start + WINDOW]


def _is_hidden(text: str) -> bool:
    return any(is_in(GuardrailCheck.INJECTION, (_HIDDEN,), part) for part in _windows(text))


def _search_view(check: GuardrailCheck, names: tuple[str, ...], view: str) -> Iterator[str]:
    for some, form in _forms(check, names, view):
        for name in some if is_in(check, some, form) else ():
            verify = _VERIFIED.get(name)
            if not is_in(check, (name,), form):
                continue
            if verify is None or verify(view):  # guard: guardrail-checksums
                yield name


def _forms(check: GuardrailCheck, names: tuple[str, ...], view: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the form of a view that patterns are searched in, with these patterns."""
    if check is not GuardrailCheck.INJECTION:
        yield names, view
        if check is GuardrailCheck.SECRETS and "\n" in view:  # guard: guardrail-wrapped-secrets
            yield names, _LINE_BREAK.sub("", view)
        return
    yield tuple(name for name in names if name not in PHRASES and name != _HIDDEN), view.lower()
    yield tuple(name for name in names if name in PHRASES), words_of(view)
