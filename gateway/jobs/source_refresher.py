"""Refreshes of sources that are due: the catalog fetches, compares and stores; this job counts the outcomes."""

from dataclasses import dataclass

from gateway.catalog.sources.refreshes import begin_refresh, run_refresh
from gateway.catalog.transaction import CatalogContext
from gateway.store.jobs import Job
from gateway.telemetry.metrics import Metrics


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRefresher:
    """Runs the refreshes that are due."""

    catalog: CatalogContext
    metrics: Metrics

    async def perform(self, due: Job) -> None:
        """Run one refresh, unless another replica does.

        Raises:
            Unavailable, LimitExceeded: as for `run_refresh`; the refresh is repeated when its lease ends.
        """
        run = await begin_refresh(self.catalog, due)
        outcome = None if run is None else await run_refresh(self.catalog, run)
        if outcome is not None:
            self.metrics.source_refreshes.add(outcome.value)
