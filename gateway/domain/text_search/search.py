"""Searches of one text for patterns, in overlapping windows of its normalised views.

Callers limit the size of the text; every step is linear in it.
"""

from collections.abc import Iterator, Mapping

from gateway.domain.tenancy.guardrail_checks import GuardrailCheck
from gateway.domain.text_search.checksums import has_card, has_iban
from gateway.domain.text_search.normalization import fold, fold_spaced, has_invisible, phrase_views, shorten_gaps, views
from gateway.domain.text_search.patterns import is_in, patterns_of

WINDOW = 16 * 1024
_OVERLAP = 1024
"""Overlap of two windows in characters; longer than any match, because gaps in a match are shortened."""
_HIDDEN = "hidden-text"
_VERIFIED = {"card": has_card, "iban": has_iban}


def search(check: GuardrailCheck, chosen: tuple[str, ...], text: str) -> tuple[str, ...]:
    """Return the names of the patterns that match the text, in the order of the patterns."""
    return search_all({check: chosen}, text)[check]


def search_all(checks: Mapping[GuardrailCheck, tuple[str, ...]], text: str) -> Mapping[GuardrailCheck, tuple[str, ...]]:
    """Return the names of the matching patterns of several checks; the text is normalised once."""
    wanted = {check: patterns_of(check, chosen) for check, chosen in checks.items()}
    injection = GuardrailCheck.INJECTION
    found: set[tuple[GuardrailCheck, str]] = set()
    if _HIDDEN in wanted.get(injection, ()) and any(is_in(injection, (_HIDDEN,), part) for part in _windows(text)):
        found.add((injection, _HIDDEN))
    has_two_forms = injection in wanted and has_invisible(text)
    for undo in (fold, fold_spaced) if has_two_forms else (fold,):
        for window in _windows(shorten_gaps(text, undo)):  # guard: guardrail-gaps
            for view in views(window):
                for check, names in wanted.items():
                    found.update((check, name) for name in _search_view(check, names, view))
    return {check: tuple(name for name in names if (check, name) in found) for check, names in wanted.items()}


def _windows(text: str) -> Iterator[str]:
    for start in range(0, max(1, len(text) - _OVERLAP), WINDOW - _OVERLAP):
        yield text[start : start + WINDOW]


def _search_view(check: GuardrailCheck, names: tuple[str, ...], view: str) -> Iterator[str]:
    forms = tuple(phrase_views(view)) if check is GuardrailCheck.INJECTION else (view,)
    if not any(is_in(check, names, form) for form in forms):
        return
    for name in names:
        if any(is_in(check, (name,), form) for form in forms):
            verify = _VERIFIED.get(name)
            if verify is None or verify(view):  # guard: guardrail-checksums
                yield name
