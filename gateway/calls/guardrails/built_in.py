"""Built-in guardrails: searches of bounded texts for patterns, on the event loop or in a thread.

A text is searched in overlapping windows. A search of more than one window runs in a thread, two at once on a replica
and one per tenant, so that large texts delay neither the event loop nor other tenants.
"""

from collections.abc import Iterator

import anyio.to_thread

from gateway.calls.guardrails.checksums import has_card, has_iban
from gateway.calls.guardrails.normalization import fold, fold_spaced, has_invisible, phrase_views, shorten_gaps, views
from gateway.definitions.guardrail_patterns import is_in, patterns_of
from gateway.domain.fairness.share import FairSlotPool
from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.guardrails import GuardrailCheck

CONCURRENT_SEARCHES = 2
_LONGEST_QUEUE = 16
_PATIENCE_S = 10.0
_WINDOW = 16 * 1024
_OVERLAP = 1024
"""Characters that two windows share: longer than a match of any pattern has to be, because gaps in it are shortened."""
_VERIFIED = {"card": has_card, "iban": has_iban}


class TextSearch:
    """Searches of this replica for the patterns of guardrails."""

    def __init__(self) -> None:
        self.places = FairSlotPool(
            "checks of large texts", slots=CONCURRENT_SEARCHES, queue=_LONGEST_QUEUE, patience_s=_PATIENCE_S
        )

    async def find(
        self, tenant: TenantId, check: GuardrailCheck, chosen: tuple[str, ...], text: str
    ) -> tuple[str, ...]:
        """Names of the patterns that the text contains.

        Raises:
            LimitExceeded: too many searches of large texts wait, of this tenant or in all.
        """
        if len(text) <= _WINDOW:
            return search(check, chosen, text)
        async with self.places.hold(tenant):
            return await anyio.to_thread.run_sync(search, check, chosen, text)


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
    for start in range(0, max(1, len(text) - _OVERLAP), _WINDOW - _OVERLAP):
        yield text[start : start + _WINDOW]


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
