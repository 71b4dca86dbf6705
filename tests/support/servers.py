"""Real PostgreSQL and Redis for tests: one pair per test process, a fresh database and an empty Redis per test."""

import asyncio
import itertools
import shutil
import tempfile
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit, urlunsplit

import redis
from anyio.from_thread import start_blocking_portal

from gateway.embedded.servers import EmbeddedServers, EmbeddedUrls
from gateway.store.database.connection import connect_owner
from gateway.store.database.migrations import migrate

_Result = TypeVar("_Result")

TEMPLATE = "gateway_template"
_CHEAP = ("fsync = off", "max_wal_size = '96MB'", "min_wal_size = '32MB'")
"""What tests store need not survive a power cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TestDatabase:
    """One migrated database: as the gateway sees it, as its owner does, and as PostgreSQL's superuser does."""

    __test__ = False

    app_url: str
    owner_url: str
    superuser_url: str


class TestServers:
    """The servers of one test process."""

    __test__ = False

    def __init__(self, urls: EmbeddedUrls) -> None:
        self.urls = urls
        self._numbers = itertools.count(1)
        self._own_redis = itertools.cycle(range(1, 16))
        self._has_template = False

    @property
    def superuser_url(self) -> str:
        """The superuser's door to the database `postgres`."""
        return _at(self.urls.migration_database_url, user="postgres", database="postgres")

    @contextmanager
    def database(self, *, like: TestDatabase | None = None) -> Generator[TestDatabase]:
        """A migrated database of its own, or a copy of one without connections; dropped afterwards."""
        self._make_template()
        template = TEMPLATE if like is None else urlsplit(like.owner_url).path[1:]
        with self._created(f"test_{next(self._numbers)}", f"{template} strategy file_copy") as name:
            yield self._named(name)

    @contextmanager
    def empty_database(self) -> Generator[TestDatabase]:
        """A database that nobody has migrated, dropped afterwards."""
        with self._created(f"test_{next(self._numbers)}", "template1") as name:
            yield self._named(name)

    def empty_redis(self) -> str:
        """Redis without any key, and where it is."""
        return self._flushed(0)

    def copied_redis(self, source: str) -> str:
        """Redis with the keys of the one at this URL alone, which is another one."""
        number = int(source.rpartition("=")[2])
        url = self.empty_redis()
        with redis.Redis(unix_socket_path=urlsplit(url).path, db=number) as client:
            command = cast(Callable[..., Any], cast(Any, client).execute_command)
            for key in command("KEYS", "*"):
                command("COPY", key, key, "DB", 0)
        return url

    def own_redis(self) -> str:
        """The same, and nobody empties it but who asks for the fifteenth one after it."""
        return f"{self._flushed(number := next(self._own_redis))}?db={number}"

    def _flushed(self, number: int) -> str:
        with redis.Redis(unix_socket_path=urlsplit(self.urls.redis_url).path, db=number) as client:
            client.execute_command("FLUSHDB")  # pyright: ignore[reportUnknownMemberType]  # partly typed
        return self.urls.redis_url

    @contextmanager
    def _created(self, name: str, template: str) -> Generator[str]:
        self._run(f"create database {name} template {template} owner gateway_owner")
        try:
            yield name
        finally:
            self._run(f"drop database if exists {name} with (force)")

    def _named(self, name: str) -> TestDatabase:
        return TestDatabase(
            app_url=_at(self.urls.database_url, database=name),
            owner_url=_at(self.urls.migration_database_url, database=name),
            superuser_url=_at(self.superuser_url, database=name),
        )

    def _make_template(self) -> None:
        """Migrated once per process and copied from then on."""
        if not self._has_template:
            for statement in (*(f"alter system set {setting}" for setting in _CHEAP), "select pg_reload_conf()"):
                self._run(statement)
            self._run(f"create database {TEMPLATE} owner gateway_owner")
            run_apart(migrate(_at(self.urls.migration_database_url, database=TEMPLATE)))
            self._has_template = True

    def _run(self, statement: str) -> None:
        run_apart(execute(self.superuser_url, statement))


@contextmanager
def running_servers() -> Generator[TestServers]:
    """Both servers in a short temporary folder, on an event loop of their own."""
    folder = Path(tempfile.mkdtemp(prefix="gwt-"))
    try:
        with (
            start_blocking_portal("asyncio") as portal,
            portal.wrap_async_context_manager(EmbeddedServers(folder)) as urls,
        ):
            yield TestServers(urls)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def execute(url: str, statement: str) -> None:
    """Run one statement on a connection of its own."""
    connection = await connect_owner(url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


def run_apart(coroutine: Coroutine[object, object, _Result]) -> _Result:
    """Run a coroutine to its end from synchronous code, whether or not a loop runs in this thread."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()


def _at(url: str, *, database: str, user: str | None = None) -> str:
    parts = urlsplit(url)
    netloc = parts.netloc if user is None else f"{user}@"
    return urlunsplit(parts._replace(netloc=netloc, path=f"/{database}"))
