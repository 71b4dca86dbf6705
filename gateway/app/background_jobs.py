"""Background jobs of a replica: the job scheduler, and the attachments of live sources."""

from functools import partial

from gateway.app.infrastructure import Infrastructure
from gateway.app.live_sources import build_attachments
from gateway.app.metrics_wiring import connect_delivery_metrics
from gateway.app.runtime import Runtime
from gateway.catalog import audit_retention, audit_sinks, idempotency
from gateway.catalog.calls import approvals, mcp_tasks
from gateway.catalog.identity import sign_ins
from gateway.catalog.notifications import deliveries
from gateway.catalog.sources import schedule, uploads, versions
from gateway.catalog.transaction import CatalogContext
from gateway.catalog.updates import watches
from gateway.jobs.audit_delivery import AuditDelivery
from gateway.jobs.live.attachments import LiveAttachments
from gateway.jobs.scheduler import JobScheduler, Perform
from gateway.jobs.source_refresher import SourceRefresher
from gateway.jobs.watch_poller import WatchPoller
from gateway.jobs.webhook_sender import WebhookSender
from gateway.protocol.tasks.runs import TaskRunner
from gateway.settings import Settings
from gateway.store.jobs import Job
from gateway.telemetry.metrics import Metrics


def build_jobs(
    infrastructure: Infrastructure,
    catalog: CatalogContext,
    runtime: Runtime,
    tasks: TaskRunner,
    *,
    metrics: Metrics,
    settings: Settings,
) -> tuple[JobScheduler, LiveAttachments]:
    """Build the scheduler with one handler for each kind of job, and the attachments of live sources."""
    upstream, find_credential = infrastructure.upstream, runtime.secrets.named
    delivery = AuditDelivery(catalog=catalog, upstream=upstream, named=find_credential, folder=settings.audit_folder)
    connect_delivery_metrics(metrics, delivery)

    async def resume_task(due: Job) -> None:
        await tasks.take_due(due.tenant, due.id)

    kinds: dict[str, Perform] = {
        watches.KIND: WatchPoller(catalog=catalog, upstream=upstream, named=find_credential).perform,
        deliveries.KIND: WebhookSender(catalog=catalog, upstream=upstream, metrics=metrics).perform,
        idempotency.KIND: partial(idempotency.clean_up, catalog),
        approvals.KIND: partial(approvals.sweep, catalog),
        mcp_tasks.KIND: resume_task,
        audit_sinks.KIND: delivery.perform,
        sign_ins.KIND: partial(sign_ins.clean_up, catalog),
        schedule.REFRESH_KIND: SourceRefresher(catalog=catalog, metrics=metrics).perform,
        schedule.PRUNE_KIND: partial(versions.prune_due, catalog),
        uploads.EXPIRY_KIND: partial(uploads.expire_due, catalog),
        audit_retention.KIND: partial(audit_retention.cut_due, catalog),
    }
    scheduler = JobScheduler(infrastructure.store, kinds)
    return scheduler, build_attachments(infrastructure, catalog, runtime.live)
