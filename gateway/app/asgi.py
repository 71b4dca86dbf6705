"""ASGI composition: the edge middleware, and behind it the tenants' URLs, the admin API, the metrics and the probes."""

from collections.abc import Sequence

from starlette.applications import Starlette
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp

from gateway.admin.admission import AdminLimits
from gateway.admin.dispatch import RequestGate
from gateway.admin.endpoint import AdminDependencies
from gateway.admin.routes.index import admin_routes, reference_route
from gateway.app.event_router import EventRouter
from gateway.app.infrastructure import Infrastructure
from gateway.app.readiness import Readiness
from gateway.app.runtime import Runtime
from gateway.app.workers.siblings import Siblings
from gateway.catalog.audit import TrailVerifier
from gateway.catalog.audit_export import TrailExporter
from gateway.catalog.doctor.doctor import Doctor
from gateway.catalog.identity.secret_keys.rotation import SecretRotation
from gateway.catalog.snapshots.python_primitives import PythonPrimitives
from gateway.catalog.transaction import CatalogContext, CatalogOptions
from gateway.domain.tenancy.configured_secret import ConfiguredSecret
from gateway.domain.tenancy.policy import Limits, read_decisions
from gateway.protocol.app import McpApp
from gateway.registry.cursors import Cursors
from gateway.settings import Settings
from gateway.telemetry.metrics import Metrics
from gateway.web.edge import Edge, EdgeDependencies
from gateway.web.error_page import error_page_route
from gateway.web.health import ReadinessProbe, health_routes
from gateway.web.hosts import default_hosts
from gateway.web.metrics import MonitoringKeys, metrics_routes
from gateway.web.prefix_router import PrefixRouter
from gateway.web.problems import problem_handlers
from gateway.web.protected_resources import key_set_route, metadata_route
from gateway.web.proxies import Proxies


def build_catalog(
    infrastructure: Infrastructure,
    events: EventRouter,
    code: PythonPrimitives,
    settings: Settings,
    *,
    ceilings: Limits,
    metrics: Metrics,
) -> CatalogContext:
    """Build the context that the functions of the catalog receive.

    Raises:
        BrokenSetting: a decision for new tenants is invalid.
    """
    return CatalogContext(
        store=infrastructure.store,
        sealer=infrastructure.cipher,
        upstream=infrastructure.upstream,
        publish=events.publish,
        chain_key=infrastructure.cipher.derive("audit"),
        code=code,
        secret_stores=infrastructure.secret_stores,
        key_sets=infrastructure.key_sets,
        audit=infrastructure.audit.write,
        settle=infrastructure.refusals.settle,
        count_drift=metrics.drift.add,
        options=CatalogOptions(
            ceilings=ceilings,
            tenant_policy=read_decisions(settings.tenant_policy),
            public_url=settings.public_url,
            mcp_base_url=settings.mcp_base_url,
            live_commands=settings.live_commands,
            reference_hosts=frozenset(host.lower() for host in settings.reference_hosts),
            retention_min_days=settings.audit_retention_min_days,
            refresh_min_s=settings.refresh_min_s,
            upstream_timeout_max_s=settings.upstream_timeout_max_s,
            versions_kept=settings.source_versions,
        ),
    )


def build_admin(
    catalog: CatalogContext,
    trails: tuple[TrailVerifier, TrailExporter],
    runtime: Runtime,
    doctor: Doctor,
    *,
    limits: AdminLimits,
    secret_keys: SecretRotation,
) -> list[BaseRoute]:
    """Build the admin API and its reference."""
    admin = AdminDependencies(
        catalog=catalog,
        cursors=Cursors(*catalog.sealer.derive_all("admin cursors")),
        doctor=doctor,
        verifier=trails[0],
        exporter=trails[1],
        connections=runtime.connections,
        calls=runtime.calls,
        secret_keys=secret_keys,
    )
    gate = RequestGate(credentials=runtime.credentials, limits=limits, operators=runtime.operators)
    return [reference_route(limits), Mount("/admin/v1", routes=admin_routes(admin, gate))]


def build_probes(
    probe: ReadinessProbe,
    runtime: Runtime,
    readiness: Readiness,
    metrics_key: ConfiguredSecret | None,
    *,
    siblings: Siblings | None,
) -> list[BaseRoute]:
    """Build `/healthz`, `/readyz`, the error page, resource metadata and the key set, which every listener serves."""
    readers = MonitoringKeys(runtime.credentials, key=metrics_key)
    probes = health_routes(
        probe, is_draining=lambda: readiness.is_draining, sees_reasons=readers.allow, workers=siblings
    )
    people = runtime.credentials.people
    metadata = [] if people is None else [metadata_route(runtime.credentials, people)]
    return [*probes, error_page_route(), *metadata, key_set_route(runtime.signer.key_set)]


def build_metrics(
    metrics: Metrics, runtime: Runtime, metrics_key: ConfiguredSecret | None, siblings: Siblings | None
) -> list[BaseRoute]:
    """Build `/metrics`, which the listener of the admin API serves; it includes the metrics of all workers."""
    if siblings is not None:
        siblings.follow(metrics.render)
        return [*metrics_routes(siblings.collect, runtime.credentials, key=metrics_key)]

    async def render() -> str:
        return metrics.render()

    return [*metrics_routes(render, runtime.credentials, key=metrics_key)]


class _ProblemRouter(Starlette):
    """A router that responds to every error with a problem document."""

    def build_middleware_stack(self) -> ASGIApp:
        """Return the router behind the error handlers, without Starlette's other middleware."""
        return ExceptionMiddleware(self.router, handlers=problem_handlers())


def build_edge_dependencies(settings: Settings, metrics: Metrics, readiness: Readiness) -> EdgeDependencies:
    """Build the dependencies that the edge middleware of all listeners shares."""
    proxies = Proxies(settings.trusted_proxies)
    return EdgeDependencies(proxies=proxies, metrics=metrics, is_draining=lambda: readiness.is_draining)


def build_public_app(
    routes: Sequence[BaseRoute], settings: Settings, mcp_app: McpApp, provide: ASGIApp, *, around: EdgeDependencies
) -> ASGIApp:
    """Build the edge and all routes behind it; MCP URLs bypass the main router and its middleware.

    `provide` serves the WebSockets of providers. The MCP endpoint also refuses paths below `/t/` that no route serves.
    """
    main = _ProblemRouter(routes=[*routes, Route("/t/{rest:path}", mcp_app.endpoint)])
    doorway = PrefixRouter(main, prefix="/t/", endings=("/mcp", "/sse", "/messages"), to=mcp_app.endpoint)
    return _edge(doorway, settings, around, sockets=provide)


def build_admin_front(routes: Sequence[BaseRoute], settings: Settings, around: EdgeDependencies) -> ASGIApp:
    """Build the edge and the routes of an admin API with its own listener; it serves no tenants' URLs."""
    return _edge(_ProblemRouter(routes=routes), settings, around)


def _edge(app: ASGIApp, settings: Settings, around: EdgeDependencies, *, sockets: ASGIApp | None = None) -> Edge:
    hosts = (*default_hosts(settings.public_url), *settings.allowed_hosts)
    return Edge(app, hosts=hosts, origins=settings.allowed_origins, around=around, sockets=sockets)
