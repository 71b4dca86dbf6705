"""Background jobs of a source: refreshes from its URL, and the removal of old versions."""

from datetime import UTC, datetime, timedelta

from gateway.catalog.sources.limits import MAX_BACKOFF
from gateway.catalog.transaction import CatalogContext
from gateway.domain.identifiers import SourceId, TenantId
from gateway.domain.sources import Source
from gateway.domain.updates.poll_delay import poll_delay
from gateway.errors import Fault, InvalidBody
from gateway.store import jobs
from gateway.store.engine import Db
from gateway.store.jobs import Job
from gateway.store.sources.refreshes import REFRESH_JOB_PREFIX

REFRESH_KIND = "source_refresh"
PRUNE_KIND = "source_prune"
_PRUNE_JOB_PREFIX = "prune_"


def refresh_job(tenant: TenantId, source: SourceId, due_at: datetime) -> Job:
    """The refresh job of a source."""
    return Job(tenant=tenant, id=f"{REFRESH_JOB_PREFIX}{source}", kind=REFRESH_KIND, due_at=due_at)


def jobs_of(source: SourceId) -> tuple[str, str]:
    """The ids of all jobs of a source."""
    return f"{REFRESH_JOB_PREFIX}{source}", f"{_PRUNE_JOB_PREFIX}{source}"


def source_of_job(job: Job) -> str:
    """The id of the source of a job."""
    return job.id.partition("_")[2]


def check_schedule(catalog: CatalogContext, *, interval_s: int | None, url: str | None) -> None:
    """Refuse an interval below the operator's minimum, or any interval of a source without a URL.

    Raises:
        InvalidBody: the source has no URL, or the interval is shorter than the operator's minimum.
    """
    if interval_s is None:
        return
    if url is None:
        raise _refusal("the source has no URL to refresh from; import it from a URL first")
    if interval_s < catalog.options.refresh_min_s:  # guard: refresh-interval-minimum
        raise _refusal(f"must be at least {catalog.options.refresh_min_s} (GATEWAY_REFRESH_MIN_S), or null")


async def schedule_refresh(tenant: TenantId, catalog: CatalogContext, db: Db, source: Source) -> None:
    """Schedule the next refresh of a source; without an interval, remove the job."""
    if source.url is None or source.refresh_interval_s is None:
        await jobs.remove(tenant, db, refresh_job(tenant, source.id, datetime.now(UTC)).id)
    else:
        due_at = datetime.now(UTC) + refresh_delay(catalog, source, failures=0)
        await jobs.schedule(tenant, db, refresh_job(tenant, source.id, due_at))


async def schedule_pruning(tenant: TenantId, db: Db, source: SourceId) -> None:
    """Schedule the removal of old versions."""
    job = Job(tenant=tenant, id=f"{_PRUNE_JOB_PREFIX}{source}", kind=PRUNE_KIND, due_at=datetime.now(UTC))
    await jobs.schedule(tenant, db, job)


def refresh_delay(catalog: CatalogContext, source: Source, *, failures: int) -> timedelta:
    """The delay until the next refresh: doubled with each consecutive failure, then randomized."""
    # guard: refresh-pause-minimum
    interval = timedelta(seconds=max(source.refresh_interval_s or 0, catalog.options.refresh_min_s))
    return poll_delay(interval, failures=failures, max_delay=MAX_BACKOFF)


def _refusal(reason: str) -> InvalidBody:
    pointer = "/refresh_interval_s"
    return InvalidBody(f"{pointer}: {reason}", faults=[Fault(pointer=pointer, reason=reason)])
