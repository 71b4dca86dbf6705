"""How the parts of a gateway are wired; nothing connects until the lifespan runs."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from starlette.types import ASGIApp

from gateway.admin.limits import AdminLimits
from gateway.app.asgi import (
    build_admin,
    build_admin_front,
    build_catalog,
    build_front,
    build_metrics,
    build_probes,
    build_surroundings,
)
from gateway.app.backends import Addresses
from gateway.app.event_router import Events
from gateway.app.infrastructure import Doors, build_doors
from gateway.app.installation import describe_installation
from gateway.app.metrics_wiring import follow, follow_pools, make_metrics
from gateway.app.python.hidden_names import HiddenNames
from gateway.app.python.registrations import Registrations
from gateway.app.readiness import Readiness
from gateway.app.runtime import Inside, build_inside
from gateway.app.secrets import Keys
from gateway.app.update_wiring import build_hooks, build_rounds
from gateway.domain.tenancy.ceilings import read_ceilings
from gateway.identity.failure_limit import FailureLimit
from gateway.protocol.app import Face
from gateway.redis.sessions.stores import Backing, back_sessions
from gateway.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """One or two ASGI applications, which serve while the lifespan's block runs: that opens every part, and closes
    them in reverse."""

    asgi: ASGIApp
    admin: ASGIApp | None
    """The admin API where it has a listener of its own; else it is part of `asgi`."""
    lifespan: Callable[[], AbstractAsyncContextManager[None]]


def build_app(
    settings: Settings,
    *,
    addresses: Addresses,
    keys: Keys,
    readiness: Readiness,
    code: Registrations | None = None,
) -> Application:
    """The whole gateway.

    `code` is what was registered in Python; it may change while the gateway serves.
    """
    database_url, redis_url = addresses.database_url, addresses.redis_url
    code = Registrations() if code is None else code
    ceilings = read_ceilings(settings.ceilings)
    doors = build_doors(settings, keys, database_url=database_url, redis_url=redis_url)
    metrics = make_metrics()
    failures = FailureLimit(settings.auth_failure_rate)
    inside = build_inside(doors, keys, code, metrics, ceilings=ceilings, failures=failures)
    backing = back_sessions(doors.bus, idle_s=settings.session_idle_s)
    face = _build_face(doors, inside, backing)
    events = Events(doors.bus, inside, backing.subscriptions, doors.moved)
    readiness.before_closing(face.close_streams)
    follow(metrics, doors=doors, snapshots=inside.snapshots, sessions=backing.sessions, readiness=readiness)
    catalog = build_catalog(doors, events, code, ceilings=ceilings)
    rounds = build_rounds(doors, catalog, inside)
    facts = describe_installation(settings, keys, database_url=database_url, redis_url=redis_url, code=code)

    @asynccontextmanager
    async def lifespan() -> AsyncGenerator[None]:
        async with AsyncExitStack() as stack:
            for part in (*doors.parts, inside.connections, face, rounds):  # closed in reverse
                await stack.enter_async_context(part)
            await doors.check()
            await stack.enter_async_context(HiddenNames(catalog, code, database_url=database_url))
            _listen(stack, doors, inside, face, events, code)
            yield

    hooks = build_hooks(catalog, inside, backing)
    limits = AdminLimits(settings.admin_rate)
    pools = (doors.store.places, doors.audit.queue, catalog.workers.places, catalog.verifying, hooks.places)
    calls = (inside.calls.check_places, face.open_requests)
    follow_pools(metrics, (*pools, *calls, *limits.pools), paced=lambda: face.paced)
    probes = build_probes(doors, inside, readiness, settings)
    closed = [*build_metrics(metrics, inside, settings), build_admin(catalog, inside, facts, limits)]
    around = build_surroundings(settings, metrics, readiness)
    if settings.admin_port is None:
        front = build_front([*probes, *closed, hooks.route], settings, face, around)
        return Application(asgi=front, admin=None, lifespan=lifespan)
    front = build_front([*probes, hooks.route], settings, face, around)
    return Application(asgi=front, admin=build_admin_front([*probes, *closed], settings, around), lifespan=lifespan)


def _build_face(doors: Doors, inside: Inside, backing: Backing) -> Face:
    face = Face(
        inside.credentials,
        inside.connections,
        inside.calls,
        backing,
        leftovers=inside.leftovers,
        state_keys=doors.sealer.derive_all("request state"),
    )
    if doors.traces is not None:
        face.trace(doors.traces)
    return face


def _listen(
    stack: AsyncExitStack, doors: Doors, inside: Inside, face: Face, events: Events, code: Registrations
) -> None:
    """Hear of what changes, until the stack is closed."""
    stack.callback(doors.bus.subscribe(events.deliver))
    stack.callback(doors.bus.subscribe(face.hear))
    stack.callback(doors.bus.subscribe_gaps(events.distrust))
    loop = asyncio.get_running_loop()
    stack.callback(code.subscribe(lambda: loop.call_soon_threadsafe(inside.connections.renew, code.generation)))
