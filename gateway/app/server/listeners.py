"""The listeners of one process: MCP, and the admin API if it has a port of its own. One drain stops all listeners.

Each listener has its own uvicorn server and its own connection limit. On SIGTERM or SIGINT readiness fails first. After
the notice time no listener accepts connections; calls in flight may finish within the drain time. Each further
signal ends the current wait.
"""

import asyncio
import signal
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext

import structlog
import uvicorn
from starlette.types import ASGIApp

from gateway.app.readiness import Readiness
from gateway.app.server.http_protocol import HardenedHttpProtocol
from gateway.app.server.limits import LISTENER_CLOSE_S
from gateway.errors import BrokenSetting
from gateway.settings import Settings, url_of

log = structlog.get_logger(__name__)

Started = Callable[[], Awaitable[None]]


async def _do_nothing() -> None: ...


class BoundListener:
    """A bound socket that does not listen yet."""

    def __init__(self, host: str, port: int, *, setting: str) -> None:
        """Bind the address.

        Raises:
            BrokenSetting: the address cannot be bound; the message names the setting.
        """
        self._host = host
        self.socket = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self.socket.bind((host, port))
        except OSError as error:
            self.socket.close()
            raise BrokenSetting(f"{setting}: cannot listen on {host}:{port}: {error.strerror}") from None
        self.socket.set_inheritable(False)

    @property
    def port(self) -> int:
        """The bound port."""
        found: int = self.socket.getsockname()[1]
        return found

    @property
    def url(self) -> str:
        """The address as a URL."""
        return url_of(self._host, self.port)


def bind(settings: Settings) -> tuple[BoundListener, BoundListener | None]:
    """Bind the listener of MCP, and the admin API's own listener if it is configured.

    Raises:
        BrokenSetting: an address cannot be bound.
    """
    listener = BoundListener(settings.host, settings.port, setting="GATEWAY_PORT")
    if settings.admin_port is None:
        return listener, None
    try:
        return listener, BoundListener(settings.admin_address, settings.admin_port, setting="GATEWAY_ADMIN_PORT")
    except BrokenSetting:
        listener.socket.close()
        raise


async def serve_listeners(
    served: Sequence[tuple[ASGIApp, BoundListener]], settings: Settings, readiness: Readiness, *, on_started: Started
) -> None:
    """Serve each application on its listener until a signal; call `on_started` once when all of them respond."""
    (first, listener), *others = served
    main = _Server(_config(first, settings), on_started=on_started)
    beside = [(_Server(_config(app, settings), on_started=_do_nothing), other) for app, other in others]
    servers = [main, *(server for server, _ in beside)]
    with _Signals(servers, readiness, notice_s=settings.notice_s).captured():
        async with _serving(*beside[0]) if beside else nullcontext():
            await main.serve(sockets=[listener.socket])


@asynccontextmanager
async def _serving(server: "_Server", listener: BoundListener) -> AsyncGenerator[None]:
    """Run a second server while the block runs; it responds before the block begins."""
    async with asyncio.TaskGroup() as group:
        group.create_task(server.serve(sockets=[listener.socket]))
        await server.answers.wait()
        try:
            yield
        finally:
            server.should_exit = True


def _config(app: ASGIApp, settings: Settings) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        loop="uvloop",
        http=HardenedHttpProtocol,
        lifespan="off",  # opened around the servers: a failure here raises the gateway's error; uvicorn would exit
        access_log=False,
        log_config=None,
        server_header=False,
        date_header=True,
        proxy_headers=False,  # the edge reads the headers itself, from trusted proxies only
        # longer than a load balancer reuses a connection; otherwise it may use a connection that was just
        # closed
        timeout_keep_alive=75,
        timeout_graceful_shutdown=max(1, round(settings.drain_s)),
    )


class _Server(uvicorn.Server):
    """uvicorn's server with a callback when it responds. `_Signals` handles the signals of all servers."""

    def __init__(self, config: uvicorn.Config, *, on_started: Started) -> None:
        super().__init__(config)
        self._on_started = on_started
        self.answers = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then call `on_started`."""
        await super().startup(sockets)
        if self.started:
            self.answers.set()
            await self._on_started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop the server. Then wait up to 3 s, so that cancelled requests send their last bytes before connections
        close.
        """
        await super().shutdown(sockets)
        if self.server_state.tasks:
            await asyncio.wait(self.server_state.tasks, timeout=LISTENER_CLOSE_S)

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Leave the signals to `_Signals`."""
        yield


class _Signals:
    """Turns SIGINT and SIGTERM into one drain of all servers. Unlike uvicorn, it does not raise the signal again."""

    def __init__(self, servers: Sequence[_Server], readiness: Readiness, *, notice_s: float) -> None:
        self._servers = servers
        self._readiness = readiness
        self._notice_s = notice_s

    @contextmanager
    def captured(self) -> Generator[None]:
        """Handle the signals while the block runs."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stop)
        try:
            yield
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)

    def _stop(self) -> None:
        if self._readiness.is_draining:  # the second signal: do not wait
            for server in self._servers:
                server.force_exit = server.should_exit
            self._close()
            return
        self._readiness.begin_drain_notice()
        log.info("draining", notice_s=self._notice_s)
        if self._notice_s:
            asyncio.get_running_loop().call_later(self._notice_s, self._close)
        else:
            self._close()

    def _close(self) -> None:
        self._readiness.drain()
        for server in self._servers:
            server.should_exit = True
