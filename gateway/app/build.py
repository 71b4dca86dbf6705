"""How the parts of a gateway are wired; nothing connects until the lifespan runs."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Mount

from gateway.admin.routes import admin_routes
from gateway.app.events import Events
from gateway.app.installation import describe_installation
from gateway.app.keys import Keys
from gateway.app.readiness import Readiness
from gateway.app.stored_keys import StoredKeys
from gateway.bus.buckets import Buckets
from gateway.bus.bus import Bus
from gateway.bus.sessions import Sessions
from gateway.calls.run import Calls
from gateway.catalog.catalog import Catalog
from gateway.catalog.doctor import Doctor
from gateway.catalog.snapshots import Snapshots
from gateway.catalog.stored_secrets import StoredSecrets
from gateway.connections.connections import REPAIR_S, Connections
from gateway.definitions.validators import Validators
from gateway.handlers.bind import Binder
from gateway.identity.credentials import Credentials, digest_key
from gateway.protocol.routes import Face
from gateway.registry.build import Views
from gateway.registry.cursors import Cursors
from gateway.settings import Settings
from gateway.store.audit_writer import AuditWriter
from gateway.store.engine import Store
from gateway.store.sealing import Sealer
from gateway.upstream.pool import Upstream
from gateway.web.doorway import Doorway
from gateway.web.edge import Edge
from gateway.web.health import health_routes
from gateway.web.hosts import default_hosts
from gateway.web.problems import problem_handlers


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """Where PostgreSQL and Redis are."""

    database_url: str = field(repr=False)
    redis_url: str = field(repr=False)
    is_embedded: bool


def build_app(settings: Settings, *, addresses: Addresses, keys: Keys, readiness: Readiness) -> Starlette:
    """The whole gateway as one ASGI application; its lifespan opens every part and closes them in reverse."""
    store = Store(addresses.database_url, pool_size=settings.database_pool)
    sealer = Sealer(keys.secret_keys)
    bus = Bus(addresses.redis_url, secret=sealer.derive("bus"))
    upstream = Upstream(egress_allow=settings.egress_allow)
    audit = AuditWriter(addresses.database_url, chain_key=sealer.derive("audit"))
    snapshots = Snapshots(store)
    secrets = StoredSecrets(store, sealer)
    views = Views(Binder(upstream, secrets, Validators()))
    credentials = Credentials(StoredKeys(store), peppers=sealer.derive_all("pepper"), operator_key=keys.operator_key)
    connections = Connections(snapshots, views, Cursors(sealer.derive("cursors")), repair_s=REPAIR_S)
    sessions = Sessions(bus, idle_s=settings.session_idle_s)
    face = Face(credentials, connections, Calls(Buckets(bus), audit), sessions)
    readiness.before_closing(face.close_streams)
    events = Events(
        bus, snapshots=snapshots, views=views, secrets=secrets, credentials=credentials, connections=connections
    )
    catalog = Catalog(
        store=store,
        sealer=sealer,
        upstream=upstream,
        publish=events.publish,
        digest=partial(digest_key, pepper=sealer.derive("pepper")),
        chain_key=sealer.derive("audit"),
        cursor_key=sealer.derive("admin cursors"),
    )

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        async with AsyncExitStack() as stack:
            for part in (store, bus, upstream, audit, connections, face):  # closed in reverse
                await stack.enter_async_context(part)
            await store.check()
            await bus.check()
            stack.callback(bus.subscribe(events.deliver))
            stack.callback(bus.subscribe(face.hear))
            stack.callback(bus.subscribe_gaps(events.distrust))
            yield

    checks = (("database", store.check), ("redis", bus.check))
    probes = health_routes(checks, is_draining=lambda: readiness.is_draining)
    tenants = Middleware(Doorway, prefix="/t/", to=face.endpoint)
    facts = describe_installation(settings, keys, database_url=addresses.database_url, redis_url=addresses.redis_url)
    admin = Mount("/admin/v1", routes=admin_routes(catalog, credentials, Doctor(facts)))
    return Starlette(
        routes=[*probes, admin],
        middleware=[_edge(settings), tenants],
        exception_handlers=problem_handlers(),
        lifespan=lifespan,
    )


def _edge(settings: Settings) -> Middleware:
    """What stands before every route."""
    hosts = (*default_hosts(settings.public_url), *settings.allowed_hosts)
    return Middleware(Edge, hosts=hosts, origins=settings.allowed_origins)
