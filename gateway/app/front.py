"""What stands at the URLs: the edge before everything, the tenants' face, the admin API, the probes."""

from functools import partial

from starlette.middleware import Middleware
from starlette.routing import BaseRoute, Mount

from gateway.admin.routes import admin_routes
from gateway.app.doors import Doors
from gateway.app.events import Events
from gateway.app.inside import Inside
from gateway.app.readiness import Readiness
from gateway.catalog.catalog import Catalog
from gateway.catalog.code import CodeCatalog
from gateway.catalog.doctor import Doctor
from gateway.catalog.installation import Installation
from gateway.identity.credentials import digest_key
from gateway.protocol.routes import Face
from gateway.settings import Settings
from gateway.telemetry.metrics import Metrics
from gateway.web.doorway import Doorway
from gateway.web.edge import Edge, Surroundings
from gateway.web.health import health_routes
from gateway.web.hosts import default_hosts
from gateway.web.metrics import metrics_routes
from gateway.web.proxies import Proxies


def build_catalog(doors: Doors, events: Events, code: CodeCatalog) -> Catalog:
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
        code=code,
    )


def build_admin(catalog: Catalog, inside: Inside, facts: Installation) -> Mount:
    """The admin API."""
    routes = admin_routes(catalog, inside.credentials, Doctor(facts), inside.connections, inside.calls)
    return Mount("/admin/v1", routes=routes)


def build_probes(
    doors: Doors, inside: Inside, readiness: Readiness, metrics: Metrics, settings: Settings
) -> list[BaseRoute]:
    """Whether the process is alive and ready, and its numbers."""
    checks = (("database", doors.store.check), ("redis", doors.bus.check))
    key = settings.metrics_key
    return [
        *health_routes(checks, is_draining=lambda: readiness.is_draining),
        *metrics_routes(metrics, inside.credentials, key=None if key is None else key.get_secret_value()),
    ]


def build_middleware(settings: Settings, face: Face, metrics: Metrics, readiness: Readiness) -> list[Middleware]:
    """The edge before every route, and the tenants' URLs, which skip the router."""
    hosts = (*default_hosts(settings.public_url), *settings.allowed_hosts)
    around = Surroundings(
        proxies=Proxies(settings.trusted_proxies), metrics=metrics, is_draining=lambda: readiness.is_draining
    )
    edge = Middleware(Edge, hosts=hosts, origins=settings.allowed_origins, around=around)
    return [edge, Middleware(Doorway, prefix="/t/", to=face.endpoint, but="/hooks/")]
