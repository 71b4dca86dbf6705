"""One gateway process from start to exit: backends, keys and listeners (`gateway.app.server.listeners`).

`serve` returns after a drain, so the process exits with 0.
"""

import gc
import resource
import socket
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from functools import partial

import structlog

from gateway.app.backends import Backends, open_backends
from gateway.app.build import ReplicaHost, build_app
from gateway.app.python.plugins import load_extras
from gateway.app.python.registrations import Registrations
from gateway.app.readiness import Readiness
from gateway.app.secrets import GatewayKeys, find_keys
from gateway.app.server.bound_listener import bind
from gateway.app.server.hangups import Hangups
from gateway.app.server.limits import MAX_OPEN_FILES
from gateway.app.server.listeners import Drain, Started, serve_listeners
from gateway.app.server.running import Ready, describe_running
from gateway.domain.fairness.task_supervisor import TaskSupervisor
from gateway.identity.operator_keys import key_names
from gateway.settings import Settings
from gateway.telemetry.logs import configure_logging
from gateway.telemetry.standard_streams import lost_lines

log = structlog.get_logger(__name__)


_GC_THRESHOLDS = (10_000, 20, 20)
"""Thresholds of the garbage collector. A call leaves hardly any cycles, but about 130 container objects exist while it
runs.

With lower thresholds, the collector would scan the containers of many concurrent calls repeatedly.
"""


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
    listener, admin_listener = bind(settings)
    settings = settings.model_copy(update={"port": listener.port})  # port 0 has selected a free one
    keys = find_keys(settings)
    async with open_backends(settings) as addresses:
        running = describe_running(settings, listener, admin_listener, keys=keys, addresses=addresses)

        async def started() -> None:
            log.info("serving", **running.where, operator_keys=key_names(keys.operator_key))
            if ready is not None:
                await ready(replace(running, application=replica.app))

        replica = Replica(settings, addresses, keys, code=code, host=ReplicaHost(lost_lines=partial(lost_lines, lines)))
        sockets = [one.socket for one in (listener, admin_listener) if one is not None]
        async with replica.opened(), TaskSupervisor() as tasks:
            hangups.answer(replica.app.reread, tasks)
            with replica.drain.on_signals():
                await replica.serve(sockets, on_started=started)
    log.info("stopped")


class Replica:
    """A replica of this process: its application, and its drain."""

    def __init__(
        self,
        settings: Settings,
        addresses: Backends,
        keys: GatewayKeys,
        *,
        code: Registrations,
        host: ReplicaHost,
    ) -> None:
        """Build the application; nothing connects before `opened`.

        Raises:
            BrokenSetting: a ceiling of the settings is invalid.
        """
        self._settings = settings
        readiness = Readiness()
        self.drain = Drain(readiness, notice_s=settings.notice_s)
        self.app = build_app(
            settings,
            addresses=addresses,
            keys=keys,
            readiness=readiness,
            code=code,
            host=host,
        )

    def opened(self) -> AbstractAsyncContextManager[None]:
        """Open the parts of the application while the block runs."""
        _allow_open_files()
        return self.app.lifespan()

    async def serve(self, sockets: Sequence[socket.socket], *, on_started: Started) -> None:
        """Serve until the drain has ended: MCP on the first socket, the admin API on the second if it has its own."""

        async def started() -> None:
            gc.collect()
            gc.freeze()  # objects made so far live until the process ends, so later collections skip them
            gc.set_threshold(*_GC_THRESHOLDS)
            await on_started()

        apps = [app for app in (self.app.asgi, self.app.admin) if app is not None]
        await serve_listeners(list(zip(apps, sockets, strict=True)), self._settings, self.drain, on_started=started)


def _allow_open_files() -> None:
    """Raise the soft limit of open files to 65,536, or to the hard limit if that is lower.

    The usual soft limit of 1,024 is below the number of connections that a replica accepts.
    """
    now, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_OPEN_FILES if hard_limit == resource.RLIM_INFINITY else min(hard_limit, MAX_OPEN_FILES)
    if now != resource.RLIM_INFINITY and now < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard_limit))
