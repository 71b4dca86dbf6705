"""Searches of one text for patterns, in overlapping windows, without the disguises that cost little to undo.

Callers bound the text. Every step is linear in it.
"""

from collections.abc import Iterator

from gateway.domain.tenancy.guardrails import GuardrailCheck
from gateway.domain.text_search.checksums import has_card, has_iban
from gateway.domain.text_search.normalization import fold, fold_spaced, has_invisible, phrase_views, shorten_gaps, views
from gateway.domain.text_search.patterns import is_in, patterns_of

WINDOW = 16 * 1024
_OVERLAP = 1024
"""Characters that two windows share: longer than a match of any pattern has to be, because gaps in it are shortened."""
_VERIFIED = {"card": has_card, "iban": has_iban}


def search(check: GuardrailCheck, chosen: tuple[str, ...], text: str) -> tuple[str, ...]:
    """Names of the patterns that the text contains, in their order."""
    wanted = patterns_of(check, chosen)
    found: set[str] = set()
    if "hidden-text" in wanted and any(is_in(check, ("hidden-text",), window) for window in _windows(text)):
        found.add("hidden-text")
    has_two_forms = check is GuardrailCheck.INJECTION and has_invisible(text)
    for undo in (fold, fold_spaced) if has_two_forms else (fold,):
        for window in _windows(shorten_gaps(text, undo)):  # guard: guardrail-gaps
            found.update(_search_window(check, wanted, window))
    return tuple(name for name in wanted if name in found)


def _windows(text: str) -> Iterator[str]:
    for start in range(0, max(1, len(text) - _OVERLAP), WINDOW - _OVERLAP):
        yield text[start : start + WINDOW]


def _search_window(check: GuardrailCheck, names: tuple[str, ...], text: str) -> Iterator[str]:
    for view in views(text):
        forms = tuple(phrase_views(view)) if check is GuardrailCheck.INJECTION else (view,)
        if not any(is_in(check, names, form) for form in forms):
            continue
        for name in names:
            if any(is_in(check, (name,), form) for form in forms):
                verify = _VERIFIED.get(name)
                if verify is None or verify(view):  # guard: guardrail-checksums
                    yield name
