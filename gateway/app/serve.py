"""One gateway process from start to exit: its servers, its keys, its socket, its signals.

On SIGTERM or SIGINT readiness fails first, calls in flight finish within the drain time, and the process exits with 0.
"""

import asyncio
import gc
import signal
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import structlog
import uvicorn

from gateway.app.build import Addresses, build_app
from gateway.app.keys import find_keys
from gateway.app.readiness import Readiness
from gateway.embedded.servers import EmbeddedServers
from gateway.errors import BrokenSetting
from gateway.settings import Settings
from gateway.store.migrate import migrate
from gateway.telemetry import configure_logging

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A gateway that answers."""

    url: str
    operator_key: str
    operator_key_is_new: bool
    data_dir: Path
    embedded: bool


Ready = Callable[[Running], Awaitable[None]]


class _Server(uvicorn.Server):
    """uvicorn's server, with a notice when it answers and an exit that is no signal."""

    def __init__(
        self, config: uvicorn.Config, *, on_started: Callable[[], Awaitable[None]], readiness: Readiness
    ) -> None:
        super().__init__(config)
        self._on_started = on_started
        self._readiness = readiness

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then tell."""
        await super().startup(sockets)
        if self.started:
            await self._on_started()

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
        self._readiness.drain()
        self.force_exit = self.should_exit  # a second signal does not wait
        self.should_exit = True
        log.info("draining")


async def serve(settings: Settings, *, ready: Ready | None = None) -> None:
    """Serve until told to stop; `ready` is called once the gateway answers.

    Raises:
        BrokenSetting: the configuration does not allow a start.
        EmbeddedServerFailed: a server of ours did not come up.
        DatabaseUnavailable, RedisUnavailable: a configured server does not answer or is not prepared.
    """
    configure_logging(level=settings.log_level, as_json=settings.log_as_json)
    listener = _listen(settings)
    keys = find_keys(settings)
    readiness = Readiness()
    async with _addresses(settings) as addresses:
        app = build_app(settings, addresses=addresses, keys=keys, readiness=readiness)
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
            log.info("serving", url=running.url, embedded=running.embedded)
            if ready is not None:
                await ready(running)

        config = uvicorn.Config(
            app,
            loop="uvloop",
            http="httptools",
            lifespan="off",  # opened below, so that what fails there is our error and not an exit of uvicorn's
            access_log=False,
            log_config=None,
            server_header=False,
            date_header=True,
            proxy_headers=False,
            timeout_keep_alive=15,
            timeout_graceful_shutdown=max(1, round(settings.drain_s)),
        )
        server = _Server(config, on_started=started, readiness=readiness)
        async with app.router.lifespan_context(app):
            await server.serve(sockets=[listener])
    log.info("stopped")


@asynccontextmanager
async def _addresses(settings: Settings) -> AsyncGenerator[Addresses]:
    """Where PostgreSQL and Redis are; when they are not configured, ours are started and migrated."""
    async with AsyncExitStack() as stack:
        database, redis = settings.database_url, settings.redis_url
        if database is not None and redis is not None:
            yield Addresses(
                database_url=database.get_secret_value(), redis_url=redis.get_secret_value(), is_embedded=False
            )
            return
        if database is not None or redis is not None:
            missing = "GATEWAY_REDIS_URL" if redis is None else "GATEWAY_DATABASE_URL"
            raise BrokenSetting(f"{missing}: set both server URLs, or neither to have both started")
        urls = await stack.enter_async_context(EmbeddedServers(settings.data_dir))
        await migrate(urls.migration_database_url)
        yield Addresses(database_url=urls.database_url, redis_url=urls.redis_url, is_embedded=True)


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
