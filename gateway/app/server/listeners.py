"""The listeners of one process: MCP, and the admin API if it has a port of its own. One drain stops all listeners.

Each listener has its own uvicorn server and its own connection limit. On SIGTERM or SIGINT readiness fails first. After
the notice time no listener accepts connections; calls in flight may finish within the drain time. Each further
signal ends the current wait. A worker drains when its supervisor requests it (`gateway.app.workers`).
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
from gateway.settings import Settings

log = structlog.get_logger(__name__)

Started = Callable[[], Awaitable[None]]


async def _do_nothing() -> None: ...


async def serve_listeners(
    served: Sequence[tuple[ASGIApp, socket.socket]], settings: Settings, drain: "Drain", *, on_started: Started
) -> None:
    """Serve each application on its socket until the drain; call `on_started` once when all of them respond."""
    (first, listener), *others = served
    main = _Server(_config(first, settings), on_started=on_started)
    beside = [(_Server(_config(app, settings), on_started=_do_nothing), other) for app, other in others]
    drain.servers = [main, *(server for server, _ in beside)]
    async with _serving(*beside[0]) if beside else nullcontext():
        await main.serve(sockets=[listener])


@asynccontextmanager
async def _serving(server: "_Server", listener: socket.socket) -> AsyncGenerator[None]:
    """Run a second server while the block runs; it responds before the block begins."""
    async with asyncio.TaskGroup() as group:
        group.create_task(server.serve(sockets=[listener]))
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
    """uvicorn's server with a callback when it responds. `Drain` handles the signals of all servers."""

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
        """Leave the signals to `Drain`."""
        yield


class Drain:
    """The end of all servers of this process: readiness fails, and after the notice time no connection is accepted."""

    def __init__(self, readiness: Readiness, *, notice_s: float) -> None:
        self._readiness = readiness
        self._notice_s = notice_s
        self.servers: Sequence[_Server] = ()

    @contextmanager
    def on_signals(self) -> Generator[None]:
        """Drain at SIGINT and SIGTERM while the block runs. Unlike uvicorn, this does not raise the signal again."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._receive)
        try:
            yield
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)

    def begin(self) -> None:
        """Begin the drain, unless it has begun."""
        if self._readiness.is_draining:
            return
        self._readiness.begin_drain_notice()
        log.info("draining", notice_s=self._notice_s)
        if self._notice_s:
            asyncio.get_running_loop().call_later(self._notice_s, self._close)
        else:
            self._close()

    def hasten(self) -> None:
        """End the current wait of the drain."""
        for server in self.servers:
            server.force_exit = server.should_exit
        self._close()

    def _receive(self) -> None:
        if self._readiness.is_draining:  # the second signal
            self.hasten()
        else:
            self.begin()

    def _close(self) -> None:
        self._readiness.drain()
        for server in self.servers:
            server.should_exit = True
