"""One gateway process from start to exit: backends, keys and listeners (`gateway.app.server.listeners`).

`serve` returns after a drain, so the process exits with 0.
"""

import gc
import resource
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import structlog

from gateway.app.backends import open_backends
from gateway.app.build import build_app
from gateway.app.python.plugins import load_extras
from gateway.app.python.registrations import Registrations
from gateway.app.readiness import Readiness
from gateway.app.secrets import find_keys
from gateway.app.server.hangups import Hangups
from gateway.app.server.limits import MAX_OPEN_FILES
from gateway.app.server.listeners import bind, serve_listeners
from gateway.domain.fairness.task_supervisor import TaskSupervisor
from gateway.identity.operator_keys import key_names
from gateway.settings import Settings
from gateway.telemetry.logs import configure_logging
from gateway.telemetry.standard_streams import lost_lines

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A gateway that responds to requests."""

    url: str
    admin_url: str
    """URL of the admin API: equal to `url`, unless the admin API has a listener of its own."""
    operator_key: str
    operator_key_is_new: bool
    data_dir: Path
    embedded: bool


_GC_THRESHOLDS = (10_000, 20, 20)
"""Thresholds of the garbage collector. A call leaves hardly any cycles, but about 130 container objects exist while it
runs.

With lower thresholds, the collector would scan the containers of many concurrent calls repeatedly.
"""

Ready = Callable[[Running], Awaitable[None]]


async def serve(settings: Settings, *, ready: Ready | None = None, code: Registrations | None = None) -> None:
    """Serve until SIGTERM or SIGINT; call `ready` once the gateway responds. SIGHUP reads secrets from files again.

    Without `code`, the Python primitives that the settings name are loaded.

    Raises:
        BrokenSetting: the configuration does not permit a start.
        EmbeddedServerFailed: an embedded server did not start.
        DatabaseUnavailable, RedisUnavailable: a configured server does not respond or is not prepared.
    """
    hangups = Hangups()
    with hangups.received():
        await _serve(settings, ready, code, hangups)


async def _serve(settings: Settings, ready: Ready | None, code: Registrations | None, hangups: Hangups) -> None:
    lines = configure_logging(level=settings.log_level, as_json=settings.log_as_json)
    settings.check_exposure()
    code = load_extras(settings) if code is None else code
    _allow_open_files()
    listener, admin_listener = bind(settings)
    settings = settings.model_copy(update={"port": listener.port})  # port 0 has selected a free one
    keys = find_keys(settings)
    readiness = Readiness()
    async with open_backends(settings) as addresses:
        app = build_app(
            settings,
            addresses=addresses,
            keys=keys,
            readiness=readiness,
            code=code,
            lost_lines=partial(lost_lines, lines),
        )
        served = [(app.asgi, listener)]
        if app.admin is not None and admin_listener is not None:
            served.append((app.admin, admin_listener))
        url = settings.public_url or listener.url
        running = Running(
            url=url,
            admin_url=url if admin_listener is None else admin_listener.url,
            operator_key=keys.operator_keys[0],
            operator_key_is_new=keys.operator_key_is_new,
            data_dir=settings.data_dir,
            embedded=addresses.is_embedded,
        )

        async def started() -> None:
            gc.collect()
            gc.freeze()  # objects made so far live until the process ends, so later collections skip them
            gc.set_threshold(*_GC_THRESHOLDS)
            where = {"url": running.url, "admin_url": running.admin_url, "embedded": running.embedded}
            log.info("serving", **where, operator_keys=key_names(keys.operator_key))
            if ready is not None:
                await ready(running)

        async with app.lifespan(), TaskSupervisor() as tasks:
            hangups.answer(app.reread, tasks)
            await serve_listeners(served, settings, readiness, on_started=started)
    log.info("stopped")


def _allow_open_files() -> None:
    """Raise the soft limit of open files to 65,536, or to the hard limit if that is lower.

    The usual soft limit of 1,024 is below the number of connections that a replica accepts.
    """
    now, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_OPEN_FILES if hard_limit == resource.RLIM_INFINITY else min(hard_limit, MAX_OPEN_FILES)
    if now != resource.RLIM_INFINITY and now < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard_limit))
