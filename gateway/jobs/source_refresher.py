"""Looks at the URLs of sources that are due: the catalog fetches, compares and stores; outcomes are counted here."""

from dataclasses import dataclass

from gateway.catalog.sources.refreshes import begin_look, take_look
from gateway.catalog.transaction import CatalogContext
from gateway.store.jobs import Job
from gateway.telemetry.metrics import Metrics


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRefresher:
    """Takes the looks that are due."""

    catalog: CatalogContext
    metrics: Metrics

    async def perform(self, due: Job) -> None:
        """Take one look, unless another replica does.

        Raises:
            Unavailable, LimitExceeded: as for `take_look`; the look is taken again when its lease ends.
        """
        look = await begin_look(self.catalog, due)
        outcome = None if look is None else await take_look(self.catalog, look)
        if outcome is not None:
            self.metrics.source_refreshes.add(outcome.value)
