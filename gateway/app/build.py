"""Wiring of all parts of a gateway; nothing connects until the lifespan runs."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

from starlette.types import ASGIApp

from gateway.admin.admission import AdminLimits
from gateway.app.asgi import (
    build_admin,
    build_admin_front,
    build_catalog,
    build_edge_dependencies,
    build_metrics,
    build_probes,
    build_public_app,
)
from gateway.app.backends import Backends
from gateway.app.background_jobs import build_jobs
from gateway.app.event_router import EventRouter, build_event_router
from gateway.app.infrastructure import Infrastructure, build_infrastructure
from gateway.app.installation import describe_installation
from gateway.app.live_sources import build_provide_endpoint
from gateway.app.metrics_wiring import connect_metrics, connect_pools, make_metrics
from gateway.app.pages import build_pages
from gateway.app.python.hidden_names import HiddenNames
from gateway.app.python.registrations import Registrations
from gateway.app.readiness import Readiness
from gateway.app.readiness_checks import build_readiness_probe, examine_parts
from gateway.app.runtime import Runtime, build_runtime
from gateway.app.secrets import GatewayKeys, RereadSecrets
from gateway.app.secrets_reread import reread_secrets
from gateway.app.workers.siblings import Siblings
from gateway.catalog.audit import TrailVerifier
from gateway.catalog.audit_export import TrailExporter
from gateway.catalog.calls.mcp_tasks import TaskRecords
from gateway.catalog.doctor.doctor import Doctor
from gateway.catalog.identity.secret_keys.rotation import SecretRotation
from gateway.catalog.transaction import CatalogContext
from gateway.catalog.updates.webhooks import SingleUse
from gateway.domain.fairness.thread_kinds import THREAD_KINDS
from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.ceilings import read_ceilings
from gateway.protocol.app import McpApp
from gateway.protocol.tasks.runs import TaskRunner
from gateway.registry.connections.connections import Connections
from gateway.settings import Settings
from gateway.web.webhook_receiver import WebhookReceiver


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """One or two ASGI applications, which serve while the block of `lifespan` runs.

    The lifespan opens the parts in order and closes them in reverse order.
    """

    asgi: ASGIApp
    admin: ASGIApp | None
    """The application of the admin API's own listener; None if `asgi` contains the admin API."""
    lifespan: Callable[[], AbstractAsyncContextManager[None]]
    reread: Callable[[], Awaitable[None]]
    """Reads the secrets that have a file again."""
    catalog: CatalogContext = field(repr=False)
    runtime: Runtime = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaHost:
    """The program that runs a replica, as far as its metrics and probes show it."""

    lost_lines: Callable[[], int] = int
    """Counts the lost log lines of the process."""
    siblings: Siblings | None = None
    """The other workers of the machine, whose metrics and state this replica returns too."""


_ALONE = ReplicaHost()


def build_app(
    settings: Settings,
    *,
    addresses: Backends,
    keys: GatewayKeys,
    readiness: Readiness,
    code: Registrations | None = None,
    host: ReplicaHost = _ALONE,
) -> Application:
    """Build the whole gateway.

    `code` contains the primitives registered in Python; it may change while the gateway serves. Without `host`, another
    program runs the replica and writes the log.

    Raises:
        BrokenSetting: a ceiling of the settings is invalid.
    """
    secrets = RereadSecrets(settings, keys, addresses)
    code = Registrations() if code is None else code
    ceilings = read_ceilings(settings.ceilings)
    infrastructure = build_infrastructure(settings, keys, secrets)
    metrics = make_metrics(host.lost_lines)
    runtime = build_runtime(infrastructure, secrets.operator_key, code, metrics, settings=settings, ceilings=ceilings)
    mcp_app = build_mcp_app(infrastructure, runtime)
    events = build_event_router(infrastructure, runtime, mcp_app)
    readiness.before_closing(mcp_app.close_streams)
    readiness.before_closing(runtime.providers.drain)
    connect_metrics(metrics, infrastructure, runtime, mcp_app.tasks, readiness=readiness)
    catalog = build_catalog(infrastructure, events, code, settings, ceilings=ceilings, metrics=metrics)
    trails = build_trails(infrastructure)
    hooks = build_hooks(catalog, runtime)
    pages = build_pages(infrastructure, catalog, runtime, settings)
    limits = AdminLimits(settings.admin_rate)
    pools = (*infrastructure.pools, catalog.workers.slot_pool, trails[0].slot_pool, *trails[1].pools, hooks.slot_pool)
    calls = (*runtime.pools, mcp_app.open_requests)
    connect_pools(metrics, (*THREAD_KINDS, *pools, *calls, *pages.pools, *limits.pools), paced=lambda: mcp_app.paced)
    facts = describe_installation(settings, keys, secrets.database_url, secrets.redis_url, code=code)
    rotation = SecretRotation(catalog, replica=infrastructure.bus.replica, digests=runtime.credentials.digests)
    jobs = build_jobs(infrastructure, catalog, runtime, mcp_app.tasks, metrics=metrics, settings=settings)
    scheduler, attachments = jobs
    provide = build_provide_endpoint(infrastructure, catalog, runtime.live, attachments, providers=runtime.providers)
    further = (*runtime.parts, rotation, mcp_app, scheduler, attachments, runtime.providers)
    parts = (runtime.connections, *further, HiddenNames(catalog, code, database_url=secrets.database_url))
    probe = build_readiness_probe(infrastructure, mcp_app.heartbeat, parts, metrics)
    probes = build_probes(probe, runtime, readiness, secrets.metrics_key, siblings=host.siblings)
    doctor = Doctor(facts, examine_parts=partial(examine_parts, probe))
    admin = build_admin(catalog, trails, runtime, doctor, limits=limits, secret_keys=rotation)
    closed = [*build_metrics(metrics, runtime, secrets.metrics_key, host.siblings), *admin]
    around = build_edge_dependencies(settings, metrics, readiness)
    lifespan = partial(_run_parts, infrastructure, runtime.connections, parts, events, code=code)
    reread = partial(reread_secrets, secrets, infrastructure, runtime.credentials)
    application = partial(Application, lifespan=lifespan, reread=reread, catalog=catalog, runtime=runtime)
    face = partial(build_public_app, settings=settings, mcp_app=mcp_app, provide=provide, around=around)
    if settings.admin_port is None:
        return application(asgi=face([*probes, *closed, hooks.route, *pages.routes]), admin=None)
    # guard: admin-door-apart
    front = face([*probes, hooks.route, *pages.routes])
    return application(asgi=front, admin=build_admin_front([*probes, *closed], settings, around))


@asynccontextmanager
async def _run_parts(
    infrastructure: Infrastructure,
    connections: Connections,
    parts: Sequence[AbstractAsyncContextManager[object]],
    events: EventRouter,
    *,
    code: Registrations,
) -> AsyncGenerator[None]:
    """Open all parts in order, the infrastructure first; close them in reverse order when the block ends."""
    async with AsyncExitStack() as stack:
        for part in infrastructure.parts:
            await stack.enter_async_context(part)
        await infrastructure.check()  # before the parts that begin work in the background
        for part in parts:
            await stack.enter_async_context(part)
        stack.enter_context(events.listening())
        loop = asyncio.get_running_loop()
        stack.callback(code.subscribe(lambda: loop.call_soon_threadsafe(connections.renew, code.generation)))
        yield


def build_mcp_app(infrastructure: Infrastructure, runtime: Runtime) -> McpApp:
    """Build all MCP transports of a replica."""
    return McpApp(
        runtime.credentials,
        runtime.connections,
        runtime.stores,
        TaskRunner(
            TaskRecords(infrastructure.store, infrastructure.cipher, infrastructure.bus.publish),
            runtime.calls,
            runtime.connections,
            runtime.credentials,
        ),
        state_keys=infrastructure.cipher.derive_all("request state"),
        traces=infrastructure.traces,
    )


def build_trails(infrastructure: Infrastructure) -> tuple[TrailVerifier, TrailExporter]:
    """Build the verification and the export of audit trails."""
    store, cipher = infrastructure.store, infrastructure.cipher
    return TrailVerifier(store, cipher, infrastructure.heads), TrailExporter(store, cipher)


def build_hooks(catalog: CatalogContext, runtime: Runtime) -> WebhookReceiver:
    """Build the endpoint of webhook deliveries."""
    nonces = runtime.stores.nonces

    async def use(tenant: TenantId, nonce: str, for_s: int) -> bool:
        return await nonces.use(tenant, nonce, for_s=for_s)

    return WebhookReceiver(catalog, runtime.limiter, SingleUse(use=use, free=nonces.free))
