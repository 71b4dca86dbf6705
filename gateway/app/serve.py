"""One gateway process from start to exit: its servers, its keys, its socket, its signals.

On SIGTERM or SIGINT readiness fails first; after the notice time, in which a balancer finds that out, no connection is
taken any more, calls in flight finish within the drain time, and the process exits with 0.
"""

import asyncio
import gc
import resource
import signal
import socket
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import structlog
import uvicorn

from gateway.app.addresses import open_addresses
from gateway.app.build import build_app
from gateway.app.keys import find_keys
from gateway.app.loading import load_extras
from gateway.app.readiness import Readiness
from gateway.app.registrations import Registrations
from gateway.app.sockets import Socket
from gateway.errors import BrokenSetting
from gateway.settings import Settings
from gateway.telemetry.logs import configure_logging

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A gateway that answers."""

    url: str
    operator_key: str
    operator_key_is_new: bool
    data_dir: Path
    embedded: bool


_PARTING_S = 3.0
_COLLECT_AT = (10_000, 20, 20)
"""When cycles are looked for: a call leaves hardly any, and holds some 130 containers while it runs.

With less, what many calls hold at once would be looked through again and again.
"""
_OPEN_FILES = 65_536
"""More than twice the connections that one replica takes: a call may hold one to its upstream."""

Ready = Callable[[Running], Awaitable[None]]


class _Server(uvicorn.Server):
    """uvicorn's server, with a notice when it answers and an exit that is no signal."""

    def __init__(
        self,
        config: uvicorn.Config,
        *,
        on_started: Callable[[], Awaitable[None]],
        readiness: Readiness,
        notice_s: float,
    ) -> None:
        super().__init__(config)
        self._on_started = on_started
        self._readiness = readiness
        self._notice_s = notice_s

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then tell."""
        await super().startup(sockets)
        if self.started:
            await self._on_started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop, and let what had to be cancelled say its last words while there still is somebody to hear them."""
        await super().shutdown(sockets)
        if self.server_state.tasks:
            await asyncio.wait(self.server_state.tasks, timeout=_PARTING_S)

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Turn the two signals into a drain; unlike uvicorn's own, do not raise them again afterwards."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stop)
        try:
            yield
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)

    def _stop(self) -> None:
        if self._readiness.is_draining:  # told again: do not wait
            self.force_exit = self.should_exit
            self._close()
            return
        self._readiness.step_down()
        log.info("draining", notice_s=self._notice_s)
        if self._notice_s:
            asyncio.get_running_loop().call_later(self._notice_s, self._close)
        else:
            self._close()

    def _close(self) -> None:
        self._readiness.drain()
        self.should_exit = True


async def serve(settings: Settings, *, ready: Ready | None = None, code: Registrations | None = None) -> None:
    """Serve until told to stop; `ready` is called once the gateway answers.

    Without `code`, what is registered in Python is what the settings name.

    Raises:
        BrokenSetting: the configuration does not allow a start.
        EmbeddedServerFailed: a server of ours did not come up.
        DatabaseUnavailable, RedisUnavailable: a configured server does not answer or is not prepared.
    """
    configure_logging(level=settings.log_level, as_json=settings.log_as_json)
    settings.check_exposure()
    code = load_extras(settings) if code is None else code
    _allow_open_files()
    listener = _listen(settings)
    keys = find_keys(settings)
    readiness = Readiness()
    async with open_addresses(settings) as addresses:
        app = build_app(settings, addresses=addresses, keys=keys, readiness=readiness, code=code)
        running = Running(
            url=settings.public_url or f"http://{_shown(settings.host)}:{_port(listener)}",
            operator_key=keys.operator_key,
            operator_key_is_new=keys.operator_key_is_new,
            data_dir=settings.data_dir,
            embedded=addresses.is_embedded,
        )

        async def started() -> None:
            gc.collect()
            gc.freeze()  # what was made so far lives as long as the process
            gc.set_threshold(*_COLLECT_AT)
            log.info("serving", url=running.url, embedded=running.embedded)
            if ready is not None:
                await ready(running)

        config = uvicorn.Config(
            app.asgi,
            loop="uvloop",
            http=Socket,
            lifespan="off",  # opened below, so that what fails there is our error and not an exit of uvicorn's
            access_log=False,
            log_config=None,
            server_header=False,
            date_header=True,
            proxy_headers=False,  # the edge reads them, from trusted proxies only
            timeout_keep_alive=75,  # longer than balancers keep theirs, or they send into a connection just closed
            timeout_graceful_shutdown=max(1, round(settings.drain_s)),
        )
        server = _Server(config, on_started=started, readiness=readiness, notice_s=settings.notice_s)
        async with app.lifespan():
            await server.serve(sockets=[listener])
    log.info("stopped")


def _allow_open_files() -> None:
    """Use what the machine allows of open files: the usual 1,024 are far from the connections we take."""
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _OPEN_FILES if most == resource.RLIM_INFINITY else min(most, _OPEN_FILES)
    if now != resource.RLIM_INFINITY and now < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


def _listen(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
    except OSError as error:
        listener.close()
        raise BrokenSetting(
            f"GATEWAY_PORT: {settings.host}:{settings.port} cannot be listened on: {error.strerror}"
        ) from None
    listener.set_inheritable(False)
    return listener


def _port(listener: socket.socket) -> int:
    port: int = listener.getsockname()[1]
    return port


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host
