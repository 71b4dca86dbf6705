"""Lifetime of the embedded PostgreSQL and Redis, which are opened and closed together."""

from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from urllib.parse import quote

from gateway.embedded.postgres import APP, DATABASE, OWNER, running_postgres
from gateway.embedded.redis import running_redis, socket_path
from gateway.embedded.state_directory import StateDirectory, claim
from gateway.embedded.supervisor import watching


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedUrls:
    """URLs of PostgreSQL, with the login of the running gateway and with the schema owner's login, and of Redis."""

    database_url: str
    migration_database_url: str
    redis_url: str


class EmbeddedServers:
    """PostgreSQL and Redis on unix sockets; their data stays in the data directory between starts.

    Open it from the main thread: on Linux the servers end with the thread that started them. A server that ends by
    itself is restarted, at most three times within a minute.

    Raises:
        EmbeddedServerFailed: on opening, a server did not start, or the directory is in use or cannot be written.
            Later, a server could not be restarted; the block is cancelled first.
    """

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> EmbeddedUrls:
        async with AsyncExitStack() as stack:
            folders = stack.enter_context(claim(self._data_dir))
            servers = [
                await stack.enter_async_context(running(folders)) for running in (running_redis, running_postgres)
            ]
            await stack.enter_async_context(watching(servers))
            self._stack = stack.pop_all()
        return _urls(folders)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.__aexit__(kind, error, trace)


def _urls(folders: StateDirectory) -> EmbeddedUrls:
    host = quote(str(folders.sockets), safe="/")
    return EmbeddedUrls(
        database_url=f"postgresql://{APP}@/{DATABASE}?host={host}&port=5432",
        migration_database_url=f"postgresql://{OWNER}@/{DATABASE}?host={host}&port=5432",
        redis_url=f"unix://{quote(str(socket_path(folders)), safe='/')}",
    )
