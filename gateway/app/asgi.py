"""What stands at the URLs: the edge before everything, the tenants' face, the admin API, the probes."""

from collections.abc import Sequence
from functools import partial

from starlette.applications import Starlette
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.routing import BaseRoute, Mount
from starlette.types import ASGIApp

from gateway.admin.dispatch import Gate
from gateway.admin.limits import AdminLimits
from gateway.admin.routes.index import admin_routes
from gateway.app.event_router import Events
from gateway.app.infrastructure import Doors
from gateway.app.readiness import Readiness
from gateway.app.runtime import Inside
from gateway.catalog.doctor.config_checks import Installation
from gateway.catalog.doctor.doctor import Doctor
from gateway.catalog.snapshots.python_primitives import CodeCatalog
from gateway.catalog.transaction import Catalog
from gateway.domain.tenancy.policy import Limits
from gateway.identity.authenticator import digest_key
from gateway.protocol.app import Face
from gateway.settings import Settings
from gateway.telemetry.metrics import Metrics
from gateway.web.edge import Edge, Surroundings
from gateway.web.error_page import error_page_route
from gateway.web.health import health_routes
from gateway.web.hosts import default_hosts
from gateway.web.metrics import MonitoringKeys, metrics_routes
from gateway.web.prefix_router import Doorway
from gateway.web.problems import problem_handlers
from gateway.web.proxies import Proxies


def build_catalog(doors: Doors, events: Events, code: CodeCatalog, *, ceilings: Limits) -> Catalog:
    """What the verbs of the catalog work with."""
    sealer = doors.sealer
    return Catalog(
        store=doors.store,
        sealer=sealer,
        upstream=doors.upstream,
        publish=events.publish,
        digest=partial(digest_key, pepper=sealer.derive("pepper")),
        chain_key=sealer.derive("audit"),
        cursor_key=sealer.derive("admin cursors"),
        heads=doors.heads,
        code=code,
        ceilings=ceilings,
    )


def build_admin(catalog: Catalog, inside: Inside, facts: Installation, limits: AdminLimits) -> Mount:
    """The admin API."""
    gate = Gate(credentials=inside.credentials, limits=limits)
    routes = admin_routes(catalog, gate, Doctor(facts), inside.connections, inside.calls)
    return Mount("/admin/v1", routes=routes)


def build_probes(doors: Doors, inside: Inside, readiness: Readiness, settings: Settings) -> list[BaseRoute]:
    """`/healthz`, `/readyz` and the page of errors, for every listener."""
    checks = (("database", doors.store.check), ("redis", doors.bus.check))
    readers = MonitoringKeys(inside.credentials, key=_metrics_key(settings))
    probes = health_routes(checks, is_draining=lambda: readiness.is_draining, sees_reasons=readers.allow)
    return [*probes, error_page_route()]


def build_metrics(metrics: Metrics, inside: Inside, settings: Settings) -> list[BaseRoute]:
    """`/metrics`, which stands where the admin API stands."""
    return [*metrics_routes(metrics, inside.credentials, key=_metrics_key(settings))]


def _metrics_key(settings: Settings) -> str | None:
    return None if settings.metrics_key is None else settings.metrics_key.get_secret_value()


class _Routed(Starlette):
    """The routes, with their errors as problems; what nobody foresaw is left to the edge."""

    def build_middleware_stack(self) -> ASGIApp:
        """Nothing but that."""
        return ExceptionMiddleware(self.router, handlers=problem_handlers())


def build_surroundings(settings: Settings, metrics: Metrics, readiness: Readiness) -> Surroundings:
    """Parts that the edges of all listeners share."""
    proxies = Proxies(settings.trusted_proxies)
    return Surroundings(proxies=proxies, metrics=metrics, is_draining=lambda: readiness.is_draining)


def build_front(routes: Sequence[BaseRoute], settings: Settings, face: Face, around: Surroundings) -> ASGIApp:
    """The edge before every route, and the tenants' URLs, which skip the router and what surrounds it."""
    doorway = Doorway(_Routed(routes=routes), prefix="/t/", to=face.endpoint, but="/hooks/")
    return _edge(doorway, settings, around)


def build_admin_front(routes: Sequence[BaseRoute], settings: Settings, around: Surroundings) -> ASGIApp:
    """The edge before the admin API on a listener of its own, which knows no tenants' URLs."""
    return _edge(_Routed(routes=routes), settings, around)


def _edge(app: ASGIApp, settings: Settings, around: Surroundings) -> Edge:
    hosts = (*default_hosts(settings.public_url), *settings.allowed_hosts)
    return Edge(app, hosts=hosts, origins=settings.allowed_origins, around=around)
