"""Built-in guardrails: pattern searches in text, on the event loop or in a thread.

Text is searched in overlapping windows. A search of more than one window runs in a thread, two at once on a replica
and one per tenant, so that large texts delay neither the event loop nor other tenants.
"""

import anyio.to_thread

from gateway.domain.fairness.share import FairSlotPool
from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.guardrail_checks import GuardrailCheck
from gateway.domain.text_search.search import WINDOW, search

CONCURRENT_SEARCHES = 2
_MAX_QUEUE_LENGTH = 16
_QUEUE_TIMEOUT_S = 10.0


class TextSearch:
    """Searches of this replica for the patterns of guardrails."""

    def __init__(self) -> None:
        self.slot_pool = FairSlotPool(
            "checks of large texts", slots=CONCURRENT_SEARCHES, queue=_MAX_QUEUE_LENGTH, timeout_s=_QUEUE_TIMEOUT_S
        )

    async def find(
        self, tenant: TenantId, check: GuardrailCheck, chosen: tuple[str, ...], text: str
    ) -> tuple[str, ...]:
        """Names of the patterns that the text contains.

        Raises:
            LimitExceeded: too many searches of large texts are queued, for this tenant or for all tenants.
        """
        if len(text) <= WINDOW:
            return search(check, chosen, text)
        async with self.slot_pool.hold(tenant):
            return await anyio.to_thread.run_sync(search, check, chosen, text)
